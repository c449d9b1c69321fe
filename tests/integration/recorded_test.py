#!/usr/bin/env python3
"""What versions before 0.2 and 0.2.0 stored is read, changed and read again, with the number of copies it was stored with; then it goes into
other numbers. The logs' events are of November 2026 and kept for 1500 days: record them anew before 2030.

Usage: recorded_test.py BUILD_DIR
"""
import base64
import concurrent.futures
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import connected, start_memcached

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vectors")
RECORDED = ("before_0.2.txt", "before_0.3.txt")
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
    ("eventlog fetch kept", "first\nsecond line\nthird"), ("eventlog put kept fourth", None),
    ("eventlog fetch kept --cursor CURSOR", "first\nsecond line\nthird\nfourth"),
]

# Of each structure, with the number it is put into from the one it was stored with: what is there then.
LEFT = {"counter": "7", "array": "restore\nx", "hash": "gone\tagain\nsize\tM", "table": "10.1.2.3\na b\ngone\nnew", "eventlog": "first\nsecond line\nthird\nfourth"}
NUMBERS = {1: (2, 3, 1), 2: (3, 1, 2), 3: (2, 1, 3)}


def load(paths, recorded):
    with open(os.path.join(VECTORS, recorded), encoding="ascii") as file:
        for line in file:
            if line.startswith("#"):
                continue
            server, key, flags, encoded = line.rstrip("\n").split(" ")
            value = base64.b64decode(encoded)
            with connected(paths[server]) as connection:
                connection.write(b"set %s %s 0 %d\r\n%s\r\n" % (key.encode(), flags.encode(), len(value), value))
                connection.flush()
                assert connection.readline() == b"STORED\r\n"


def run(words, copies, cursor):
    verb = [word.replace("kept", f"kept{copies}") if word != "CURSOR" else cursor for word in words.split(" ")]
    number = [] if "--copies" in verb else ["--copies", str(copies)]
    return subprocess.run([mcds, *number, "-o", "value", *verb], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)


def go_around(structure, stored, cursor):
    """What was stored with that number goes into others."""
    left, fetch = LEFT[structure], "get" if structure == "counter" else "fetch"
    before = stored
    for number in NUMBERS[stored]:
        done = run(f"{structure} recopy kept --copies {number}", stored, cursor)
        check(done.returncode == 0, f"{structure} recopy from {before} to {number}: {done.returncode} {done.stderr.strip()}")
        done = run(f"{structure} {fetch} kept --copies {number}", stored, cursor)
        check(done.returncode == 0 and sorted(done.stdout.splitlines()) == sorted(left.splitlines()),
              f"{structure}, stored in {stored} copies, in {number}: {done.returncode} {done.stdout!r} {done.stderr.strip()}, not {left!r}")
        done = run(f"{structure} {fetch} kept --copies {before}", stored, cursor)
        check(done.returncode == 65, f"{structure}, in {number} copies: fetch --copies {before} is not refused: {done.returncode} {done.stdout!r}")
        if structure == "eventlog":
            text = f"in{number}"
            run(f"eventlog put kept {text} --copies {number}", stored, cursor)
            left += "\n" + text
            done = run(f"eventlog fetch kept --cursor CURSOR --copies {number}", stored, cursor)
            check(done.returncode == 0 and done.stdout == text + "\n", f"cursor of {before} copies, in {number}: {done.stdout!r} {done.stderr}")
        before = number


COUNTER_VERBS = ("get {}", "incr {}", "decr {}", "set {} 7", "set {} 7 --if-absent", "remove {}", "incr {} --exact")


def convert_counters(recorded, copies, cursor):
    """Several copies under the key of one: every verb names the command that converts them, and changes nothing."""
    for name, value in (("kept", "42"), ("keptx", "5")):
        for verb in COUNTER_VERBS:
            done = run("counter " + verb.format(name), copies, cursor)
            check(done.returncode == 65 and "counter recopy" in done.stderr, f"{recorded}: {verb} of {copies} copies: {done.returncode} {done.stderr}")
        for _ in range(2):
            done = run(f"counter recopy {name}", copies, cursor)
            check(done.returncode == 0, f"{recorded}: counter recopy {name}, {copies} copies: {done.returncode} {done.stderr.strip()}")
        done = run(f"counter get {name}", copies, cursor)
        check(done.stdout.strip() == value, f"{recorded}: {name} in {copies} copies is {done.stdout!r} {done.stderr}, not {value}")


def go_through(recorded):
    with tempfile.TemporaryDirectory() as directory:
        paths = {name: os.path.join(directory, name) for name in ("a", "b", "c")}
        processes = [start_memcached(path, "-m", "64") for path in paths.values()]
        try:
            load(paths, recorded)
            os.environ["MCDS_SERVERS"] = ",".join(f"{name}=unix:{path}" for name, path in paths.items())
            for copies in (1, 2, 3):
                cursor = os.path.join(directory, f"cursor{copies}")
                if copies > 1:
                    convert_counters(recorded, copies, cursor)
                for words, expected in STEPS:
                    done = run(words, copies, cursor)
                    check(done.returncode in (0, 1) and (expected is None or sorted(done.stdout.splitlines()) == sorted(expected.splitlines())),
                          f"{recorded}, {copies} copies: {words}: {done.returncode} {done.stdout!r} {done.stderr.strip()}, not {expected!r}")
            with concurrent.futures.ThreadPoolExecutor(12) as waiting:
                ways = [waiting.submit(go_around, structure, copies, os.path.join(directory, f"cursor{copies}"))
                        for copies in (1, 2, 3) for structure in LEFT]
                for way in ways:
                    way.result()
        finally:
            for process in processes:
                process.kill()
                process.wait()


for name in RECORDED:
    go_through(name)
finish()
