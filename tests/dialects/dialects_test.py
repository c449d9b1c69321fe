#!/usr/bin/env python3
"""The conformance suite on memcached with other flags, on what speaks as other servers do, and on pools that mix them.

Usage: dialects_test.py BUILD_DIR. A third of them; all with MCDS_TEST_FULL=1.
"""
import os
import socket
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", part) for part in ("support", "conformance")]
from checks import check, failures, finish  # noqa: E402
from dialect import TABLE, DialectServer  # noqa: E402
from real_servers import dumped, start_memcached  # noqa: E402
from suite import Suite  # noqa: E402

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
FULL = os.environ.get("MCDS_TEST_FULL") == "1"

# What is refused there, and nothing else is anywhere: what needs cas uniques, what needs an end.
WITHOUT_CAS = {"counter set", "counter incr --exact", "lock run", "hash clear", "table clear"}
WITHOUT_EXPIRY = WITHOUT_CAS | {"counter incr --ttl", "lock show", "cache show"}
REFUSED = {"memcachedb": WITHOUT_EXPIRY, "pogocache-without-cas": WITHOUT_CAS, "-C": WITHOUT_CAS}

FLAGS = [["-C"], ["-M", "-m", "8"], ["-B", "ascii"], ["-X"], ["-I", "8m"], ["-R", "1", "-t", "1"], ["-F"]]
THIRD = {"memcached-1.5.22", "memcached-1.6.12", "twemproxy", "memcachedb", "-C"}


def start(directory, name, flags):
    path = os.path.join(directory, name)
    return start_memcached(path, *flags), path


def short(refusal):
    words = [word for word in refusal.split(": exit")[0].split() if not word.startswith("%")]
    option = [word for word in words[2:] if word in ("--exact", "--ttl") and words[0] == "counter" and words[1] == "incr"]
    return " ".join(words[:2] + option)


def conforms(name, servers, *options, refused=frozenset()):
    suite = Suite(MCDS, servers, options).all()
    what = f"{name} {' '.join(options)}"
    check(not suite.faults, f"{what}: {suite.line()}\n  " + "\n  ".join(suite.faults))
    others = [line for line in suite.refused if short(line) not in refused]
    check(not others, f"{what} refuses what works there:\n  " + "\n  ".join(others))
    missing = set(refused) - {short(line) for line in suite.refused}
    check(not missing, f"{what} was to refuse {sorted(missing)}")


def keys(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rwb") as file:
            return [key.decode() for key in dumped(file)]


def main():
    running = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            for flags in FLAGS:
                name = " ".join(flags)
                if not FULL and name not in THIRD:
                    continue
                process, path = start(directory, f"flags{len(running)}", flags)
                running.append(process)
                conforms(name, f"unix:{path}", refused=REFUSED.get(name, frozenset()))
                if name == "-C":
                    left = [key for key in keys(path) if "lock" in key and "fence" not in key]
                    check(not left, f"locks are left behind on -C: {left}")
            process, backend = start(directory, "backend", [])
            running.append(process)
            paths = {}
            for dialect in TABLE:
                paths[dialect.name] = os.path.join(directory, dialect.name)
                DialectServer(dialect, backend, paths[dialect.name])
                if FULL or dialect.name in THIRD:
                    conforms(dialect.name, f"unix:{paths[dialect.name]}", refused=REFUSED.get(dialect.name, frozenset()))
            left = [key for key in keys(backend) if "probe" in key]
            check(not left, f"probe keys are left behind: {left}")
            process, other = start(directory, "other", [])
            running.append(process)
            conforms("a new, an old and a proxy", f"unix:{other},unix:{paths['memcached-1.5.22']},unix:{paths['twemproxy']}")
            if FULL:
                conforms("classic", f"unix:{other}", "--protocol", "classic")
                conforms("meta", f"unix:{other}", "--protocol", "meta")
        finally:
            for process in running:
                process.kill()
                process.wait()
    finish()


if __name__ == "__main__":
    main()
