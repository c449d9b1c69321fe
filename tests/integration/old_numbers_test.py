#!/usr/bin/env python3
"""Batches that give the number of copies from before a recopy: refused (65), and nothing of them is stored.

Usage: old_numbers_test.py BUILD_DIR. The lines come at once, window by window, and piece by piece: what a refused window has left must
not be sent with the next. MCDS_TEST_FULL=1: more of them.
"""
import os
import select
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from real_servers import items
from recopies import FULL, four_servers, mcds, run

BATCHES = {"table": ["table", "add"], "hash": ["hash", "set"], "array": ["array", "add"], "eventlog": ["eventlog", "put"]}
FIRST = {"table": ["m"], "hash": ["f", "v"], "array": ["a"], "eventlog": ["e"]}
ROUNDS = 50 if FULL else 1


def lines_of(structure, count):
    return [f"late{number}\tv\n" if structure == "hash" else f"late{number}\n" for number in range(count)]


def in_pieces(words, lines):
    """A line, and the next one when the first has been sent: each is a window of its own."""
    with subprocess.Popen([mcds, *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as batch:
        for line in lines:
            try:
                batch.stdin.write(line)
                batch.stdin.flush()
            except BrokenPipeError:
                break
            select.select([batch.stderr], [], [], 0.05)
        errors = batch.communicate()[1]
    return subprocess.CompletedProcess(words, batch.returncode, "", errors)


def main():
    with four_servers(64) as directory:
        paths = [os.path.join(directory, f"m{number}.sock") for number in range(4)]
        for round_ in range(ROUNDS):
            for structure, words in BATCHES.items():
                for before, after in ((1, 2), (2, 3), (3, 1)):
                    name = f"s{round_}x{before}{after}"
                    made = run(*words, name, *FIRST[structure], "--copies", str(before))
                    check(made.returncode == 0, f"{structure} {before}: {made.stderr}")
                    moved = run(structure, "recopy", name, "--copies", str(after))
                    check(moved.returncode == 0, f"{structure} {before} to {after}: {moved.stderr}")
                    stored = items(paths)
                    batch = [*words, name, "-", "--copies", str(before)]
                    for lines, feed in ((3000, lambda lines: run(*batch, stdin="".join(lines))), (4, lambda lines: in_pieces(batch, lines))):
                        done = feed(lines_of(structure, lines))
                        what = f"{' '.join(batch)}, {lines} lines: {done.returncode} {done.stderr[:300]}"
                        check(done.returncode == 65 and f"is kept in {after} cop" in done.stderr, what)
                        new = {key for key in items(paths) if key not in stored}
                        check(not any(b"late" in value for _, value in items(paths).values()) and not any(b":v:" in key for _, key in new),
                              f"{what}: stored {sorted(new)[:5]}")
                    again = run(structure, "recopy", name, "--copies", str(before))
                    check(again.returncode == 0, f"{structure} back to {before}: {again.stderr}")


main()
finish()
