#!/usr/bin/env python3
"""64 processes contend for one lock while they are killed at random: never two holders, fencing tokens grow.

Usage: lock_test.py BUILD_DIR; MCDS_TEST_SECONDS sets how long (20), MCDS_TEST_SEED whom and when it kills.

Each holder takes a file's flock(2) without waiting, which the kernel frees when it dies: that it is taken means two holders.
"""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from program import MCDS, clean_environment
from real_servers import Servers

CLIENTS = 64
HOLD = 'echo $MCDS_LOCK_FENCE >> "$LOG"; sleep 0.01'


def contend(directory, servers, seconds, choice):
    log = os.path.join(directory, "log")
    environment = clean_environment(MCDS_SERVERS=servers, LOG=log)
    command = [MCDS, "lock", "run", "contended", "--ttl", "3s", "--grace", "500ms", "-w", "inf", "--",
               "flock", "-n", "-E", "99", os.path.join(directory, "resource"), "sh", "-c", HOLD]

    def client():
        return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    clients = [client() for _ in range(CLIENTS)]
    killed = finished = violations = 0
    errors = []
    end = time.monotonic() + seconds
    next_kill = 0
    while time.monotonic() < end:
        if time.monotonic() >= next_kill:
            clients[choice.randrange(CLIENTS)].send_signal(signal.SIGKILL)
            next_kill = time.monotonic() + choice.uniform(0, 0.3)
        for i, process in enumerate(clients):
            if process.poll() is None:
                continue
            killed += process.returncode == -signal.SIGKILL
            finished += process.returncode == 0
            violations += process.returncode == 99
            if process.returncode not in (0, 99, -signal.SIGKILL):
                errors.append(process.stderr.read().decode())
            process.stderr.close()
            clients[i] = client()
        time.sleep(0.005)
    for process in clients:
        process.kill()
        process.wait()
        process.stderr.close()
    with open(log, encoding="utf-8") as file:
        fences = [int(line) for line in file.read().split("\n")[:-1]]
    return killed, finished, violations, errors, fences


def main():
    seed = int(os.environ.get("MCDS_TEST_SEED", random.randrange(2**32)))
    seconds = float(os.environ.get("MCDS_TEST_SECONDS", "20"))
    with Servers(1, "-m", "16", "-t", "2") as servers:
        killed, finished, violations, errors, fences = contend(servers.directory, servers.list, seconds, random.Random(seed))
    growing = all(earlier < later for earlier, later in zip(fences, fences[1:]))
    print(f"seed {seed}: {CLIENTS} clients for {seconds:g} s: {finished} runs, {len(fences)} tenures, {killed} clients killed, "
          f"{violations} times two holders, fences {'grow' if growing else 'DO NOT grow'}")
    check(violations == 0, f"{violations} times two holders")
    check(growing, "fences do not grow")
    check(not errors, f"unexpected: {errors[:5]}")
    check(finished > 0 and killed > 0, f"{finished} finished, {killed} were killed")
    finish()


if __name__ == "__main__":
    main()
