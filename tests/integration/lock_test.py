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
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from real_servers import start_memcached

CLIENTS = 64
HOLD = 'echo $MCDS_LOCK_FENCE >> "$LOG"; sleep 0.01'


def start_server(directory):
    path = os.path.join(directory, "m1.sock")
    return start_memcached(path, "-m", "16", "-t", "2"), f"m1=unix:{path}"


def contend(directory, servers, seconds, choice):
    log = os.path.join(directory, "log")
    environment = {**os.environ, "MCDS_SERVERS": servers, "LOG": log}
    command = [mcds, "lock", "run", "contended", "--ttl", "3s", "--grace", "500ms", "-w", "inf", "--",
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
    with tempfile.TemporaryDirectory(prefix="mcds-lock-") as directory:
        server, servers = start_server(directory)
        try:
            killed, finished, violations, errors, fences = contend(directory, servers, seconds, random.Random(seed))
        finally:
            server.kill()
            server.wait()
    growing = all(earlier < later for earlier, later in zip(fences, fences[1:]))
    print(f"seed {seed}: {CLIENTS} clients for {seconds:g} s: {finished} runs, {len(fences)} tenures, {killed} clients killed, "
          f"{violations} times two holders, fences {'grow' if growing else 'DO NOT grow'}")
    for error in errors[:5]:
        print("unexpected:", error)
    checks = [violations == 0, growing, not errors, finished > 0, killed > 0]
    print(f"{sum(checks)} passed, {len(checks) - sum(checks)} failed")
    sys.exit(not all(checks))


if __name__ == "__main__":
    mcds = os.path.abspath(os.path.join(sys.argv[1], "tools", "mcds"))
    main()
