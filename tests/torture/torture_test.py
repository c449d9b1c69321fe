#!/usr/bin/env python3
"""A short torture of every structure, and whether what judges it can tell a history that no order explains. With
MCDS_TEST_FULL=1 five minutes, the faults that were planted, and the holes of the usual algorithms.

Usage: torture_test.py BUILD_DIR
"""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import FULL, check, finish
from history import ANY, PRESENT, Step, linearizable

BUILD = os.path.abspath(sys.argv[1])


def judge_histories():
    written = [Step(0, 1, ANY, "a"), Step(2, 3, ANY, "b")]
    lost_reply = [Step(0, 1, ANY, "a"), Step(2, None, ANY, "b")]
    for what, steps, right in [
            ("the last value is read", [*written, Step(4, 5, "b", ANY)], True),
            ("an older value is read", [*written, Step(4, 5, "a", ANY)], False),
            ("either is read meanwhile", [*written, Step(2, 4, "a", ANY), Step(2, 4, "b", ANY)], True),
            ("the older one after the newer", [*written, Step(2, 2.2, "b", ANY), Step(2.5, 2.8, "a", ANY)], False),
            ("an unknown write is seen late", [*lost_reply, Step(4, 5, "a", ANY), Step(6, 7, "b", ANY)], True),
            ("an unknown write is seen, then undone", [*lost_reply, Step(4, 5, "b", ANY), Step(6, 7, "a", ANY)], False),
            ("nothing was ever there", [Step(0, 1, None, ANY), Step(2, 3, "a", ANY)], False),
            ("two removed the same", [*written, Step(4, 5, PRESENT, None), Step(6, 7, PRESENT, None)], False)]:
        check(linearizable(steps) == right, f"a history in which {what} is {'refused' if right else 'accepted'}")


def torture(*words):
    done = subprocess.run([os.path.join(HERE, "run"), "--build", os.path.relpath(BUILD, os.path.join(HERE, "..", "..")), *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


judge_histories()
program = ["--mcds", os.path.join(BUILD, "tools", "mcds")]
out = torture("--minutes", "5", *program) if FULL else torture("--seconds", "9", *program)
for line in out.splitlines():
    cells = [cell.strip() for cell in line.strip("| ").split("|")]
    if len(cells) > 10 and cells[1] in ("1", "3"):
        check(int(cells[3]) > 0, f"nothing was acknowledged: {line}")
with open(program[1], "rb") as file:
    check(b"MCDS_PLANTED" not in file.read(), "faults are planted in the program itself")
if FULL:
    torture("--planted")
    torture("--holes", *program)
finish()
