#!/usr/bin/env python3
"""What versions before 0.2 stored is read, changed and read again, with the number of copies it was stored with.

Usage: recorded_test.py BUILD_DIR
"""
import base64
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import connected, start_memcached

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vectors/before_0.2.txt")
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")

# What is asked, and answered, in this order.
STEPS = [
    ("hash get kept color", "blue"), ("hash fetch kept", "color\tblue\nsize\tXL"), ("hash get kept gone", ""),
    ("table fetch kept", "10.1.2.3\na b"), ("table has kept gone", "0"),
    ("array fetch kept", "backup\nrestore"), ("counter get kept", "42"), ("counter get keptx", "5"),
    ("hash set kept size M gone again", "1\n0"), ("hash remove kept color", "1"), ("hash fetch kept", "gone\tagain\nsize\tM"),
    ("table add kept gone new", "1\n1"), ("table fetch kept", "10.1.2.3\na b\ngone\nnew"),
    ("array add kept x", None), ("array delete kept backup", None), ("array fetch kept", "restore\nx"),
    ("counter incr kept", "43"), ("counter set kept 7", None), ("counter get kept", "7"), ("counter incr keptx --exact", "6"),
    ("hash check kept", "1"), ("table check kept", "1"),
]


def load(paths):
    with open(RECORDED, encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            server, key, flags, encoded = line.rstrip("\n").split(" ")
            value = base64.b64decode(encoded)
            with connected(paths[server]) as connection:
                connection.write(b"set %s %s 0 %d\r\n%s\r\n" % (key.encode(), flags.encode(), len(value), value))
                connection.flush()
                assert connection.readline() == b"STORED\r\n"


def main():
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: os.path.join(directory, name) for name in ("a", "b", "c")}
        processes = [start_memcached(path, "-m", "64") for path in paths.values()]
        try:
            load(paths)
            servers = ",".join(f"{name}=unix:{path}" for name, path in paths.items())
            for copies in (1, 2, 3):
                for words, expected in STEPS:
                    verb = [word.replace("kept", f"kept{copies}") for word in words.split(" ")]
                    done = subprocess.run([mcds, "-s", servers, "--copies", str(copies), "-o", "value", *verb], stdin=subprocess.DEVNULL,
                                          capture_output=True, text=True, timeout=60, check=False)
                    check(done.returncode in (0, 1) and (expected is None or sorted(done.stdout.splitlines()) == sorted(expected.splitlines())),
                          f"{copies} copies: {words}: {done.returncode} {done.stdout!r} {done.stderr.strip()}, not {expected!r}")
        finally:
            for process in processes:
                process.kill()
                process.wait()
    finish()


main()
