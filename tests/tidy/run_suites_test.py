#!/usr/bin/env python3
"""A suite that dies, or never ends, holds up nothing: what it started ends with it, also in sessions of their own.

Usage: run_suites_test.py BUILD_DIR
"""
import os
import sys
import tempfile

os.environ["MCDS_TEST_SUITE_SECONDS"] = "2"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../support"), os.path.join(HERE, "..")]
import run_suites  # noqa: E402
from checks import check, finish  # noqa: E402

# Each starts one that outlives it and has its output, as a server does: in its group, and in a session of its own.
STARTS = "sleep 1000 & echo $! >>{left}; setsid sh -c 'echo $$ >>{left}; exec sleep 1000' & while [ $(wc -l <{left}) != 2 ]; do :; done; "
SUITES = {"dies": ("kill -9 $$", "ended by signal 9"), "never ends": ("sleep 1000", "no end in 2"), "fails": ("exit 3", ""),
          "passes": ("echo 7 passed, 0 failed", "7 passed")}


def is_there(number):
    try:
        with open(f"/proc/{number}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def main():
    for name, (end, said) in SUITES.items():
        with tempfile.TemporaryDirectory() as directory:
            left = os.path.join(directory, "left")
            with open(left, "wb"):
                pass
            _, passed, failed, _, output = run_suites.run((name, ["sh", "-c", STARTS.format(left=left) + end]))
            check((passed, failed) == ((7, 0) if name == "passes" else (0, 1)), f"a suite that {name}: {passed} passed, {failed} failed")
            check(said in output, f"a suite that {name} says {said!r}: {output!r}")
            with open(left, encoding="ascii") as file:
                numbers = file.read().split()
            check(len(numbers) == 2 and not any(map(is_there, numbers)), f"a suite that {name} leaves {numbers} behind")
    finish()


if __name__ == "__main__":
    main()
