#!/usr/bin/env python3
"""mcds array change --remove … --tell by 16 processes at once: each value is told to one of them at most, under kills and lost replies.

Usage: array_tell_test.py BUILD_DIR; MCDS_TEST_SEED sets the choices.
"""
import collections
import json
import os
import random
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import proxy as proxies
from checks import FULL, check, finish
from program import MCDS, environment, run
from real_servers import Servers

WORKERS, VALUES, AT_ONCE = 16, 10_000 if FULL else 3_000, 500
SEED = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))


class Worker(threading.Thread):
    """Removes all values, in an order of its own; notes what it was told, and what it asked for without an answer."""

    def __init__(self, number, environment, kills):
        super().__init__()
        self.random = random.Random(SEED + number)
        self.environment = environment
        self.kills = kills
        self.told, self.unanswered = [], set()
        self.statuses = collections.Counter()

    def run(self):
        values = [f"job {i}" for i in range(VALUES)]
        self.random.shuffle(values)
        for first in range(0, VALUES, AT_ONCE):
            some = values[first:first + AT_ONCE]
            words = [word for value in some for word in ("--remove", value)]
            process = subprocess.Popen([MCDS, "array", "change", "queue", *words, "--tell"], env=self.environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            killer = threading.Timer(self.random.uniform(0, 0.1), process.kill)
            if self.kills and self.random.random() < 0.1:
                killer.start()
            output = process.communicate()[0]
            killer.cancel()
            self.statuses[process.returncode] += 1
            if process.returncode == 0:
                self.told += json.loads(output)["deleted"]
            else:
                self.unanswered.update(some)


def race(where, faults):
    with Servers() as servers:
        proxy = proxies.Proxy(random.Random(SEED))
        try:
            run(servers.list, "array", "add", "queue", "-", input="".join(f"job {i}\n" for i in range(VALUES)), check=True)
            address = servers.list
            if faults:
                address = f"unix:{proxy.link(os.path.join(servers.directory, 'front'), servers.paths[0]).path}"
                proxy.chance = 0.02
            # With faults the timeout is the usual one: what is lost is waited for.
            own = environment(MCDS_SERVERS=f"m1={address}", **({"XDG_CONFIG_HOME": servers.directory} if faults else {}))
            workers = [Worker(number, own, faults) for number in range(WORKERS)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            proxy.honest()
            left = json.loads(run(servers.list, "array", "fetch", "queue", check=True).stdout)["values"]
        finally:
            proxy.close()
    told = collections.Counter(value for worker in workers for value in worker.told)
    statuses = sum((worker.statuses for worker in workers), collections.Counter())
    doubtful = set().union(*(worker.unanswered for worker in workers))
    check(all(count == 1 for count in told.values()), f"{where}, seed {SEED}: told twice: {told.most_common(3)}")
    lost = {f"job {i}" for i in range(VALUES)} - set(told) - doubtful - set(left)
    check(not lost, f"{where}, seed {SEED}: {len(lost)} deleted and told to nobody, such as {sorted(lost)[:3]}")
    check(not set(left) & set(told), f"{where}, seed {SEED}: told and still there: {sorted(set(left) & set(told))[:3]}")
    check(set(statuses) <= {0, -9, 69, 75, 76, 80}, f"{where}, seed {SEED}: ends with {statuses}")
    check(faults or statuses == {0: WORKERS * VALUES // AT_ONCE}, f"{where}: {statuses}")
    check(len(told) >= (VALUES // 2 if faults else VALUES), f"{where}: only {len(told)} told: {statuses}")
    print(f"{where}: {len(told)} of {VALUES} values told, each to one of {WORKERS}; {dict(statuses)}")


if __name__ == "__main__":
    race("in peace", False)
    race("under kills and lost replies", True)
    finish()
