#!/usr/bin/env python3
"""Three copies on real servers, commands that are cut off, deaf, late or halted at a certain request: some order explains all answers,
and readers that lack different servers agree. Usage: sequences_test.py BUILD_DIR [KIND SEED [COUNT]]
"""
import concurrent.futures
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import check, finish
from partitioned import World
from sequences import Sequence
from subjects import KINDS, shares

FULL = os.environ.get("MCDS_TEST_FULL", "") not in ("", "0")
COUNT = 1500 if FULL else 40
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")


def sequences(kind, first, count):
    ops, wrong = [], []
    with World(mcds) as world:
        for seed in range(first, first + count):
            done = Sequence(world, kind, seed).run()
            ops += done.subject.ops
            wrong.append((seed, done.wrong()))
    return kind, shares(ops), wrong


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    jobs = [(sys.argv[2], int(sys.argv[3]), int((sys.argv + ["1"])[4]))] if len(sys.argv) > 3 else [(kind, 0, COUNT) for kind in KINDS]
    for kind, share, wrong in pool.map(lambda job: sequences(*job), jobs):
        print(f"{kind}: {dict(share)}")
        for seed, story in wrong:
            check(story is None, f"{kind} {seed}: {story}")
        check(share["answered"] * 2 > sum(share.values()), f"{kind}: most commands are answered: {dict(share)}")
finish(20)
