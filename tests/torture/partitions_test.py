#!/usr/bin/env python3
"""Three copies while clients are cut off from different servers: nothing that was acknowledged is undone, most is answered.
With MCDS_TEST_FULL=1 two thousand commands of each structure and more. Usage: partitions_test.py BUILD_DIR [KIND SEED COMMANDS]
"""
import concurrent.futures
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from checks import check, finish
from partitions import Partitions
from subjects import KINDS

FULL = os.environ.get("MCDS_TEST_FULL", "") not in ("", "0")
COMMANDS = 2500 if FULL else 150
SEED = 1


def share(counts):
    return counts["answered"] / max(1, sum(counts.values()))


def one(kind, seed, commands):
    done = Partitions(os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds"), kind, seed).run(commands)
    during, after = done.counts["faults"], done.counts["after"]
    print(f"{kind}: {done.ops} commands, {done.serial} subjects, {done.restarts} restarts; during faults {dict(during)}, after them {dict(after)}")
    for story in done.stories:
        check(False, f"{kind}: {story}")
    check(not done.stories, f"{kind}: {len(done.stories)} of {done.serial} histories are explained by no order")
    check(share(during) >= 0.6, f"{kind}: {share(during):.0%} are answered during faults")
    check(share(after) >= 0.95, f"{kind}: {share(after):.0%} are answered after faults")


def in_a_process(kind):
    """Python runs one thread at a time."""
    done = subprocess.run([sys.executable, os.path.abspath(__file__), sys.argv[1], kind, str(SEED), str(COMMANDS)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return kind, done.returncode, done.stdout


if len(sys.argv) > 2:
    one(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for kind, status, out in pool.map(in_a_process, KINDS):
            print(out.splitlines()[0] if out else "")
            check(status == 0, f"{kind}: {out}")
finish()
