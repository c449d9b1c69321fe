#!/usr/bin/env python3
"""mcds capacity: an estimate for each size of a real server under load, and none where watching costs more than is allowed.

Usage: capacity_test.py BUILD_DIR
"""
import bisect
import itertools
import os
import random
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS, answers, environment, run, wait_for
from real_servers import Servers, connected, statistics

KEYS, SIZE, BATCH = 20000, 700, 20
SUMS = list(itertools.accumulate((rank + 1) ** -0.9 for rank in range(KEYS)))


def draw():
    return f"key:{bisect.bisect_left(SUMS, random.random() * SUMS[-1])}"


def ask(file):
    keys = list(dict.fromkeys(draw() for _ in range(BATCH)))
    file.write(b"get " + " ".join(keys).encode() + b"\r\n")
    file.flush()
    found = set()
    while (line := file.readline()) != b"END\r\n":
        words = line.split()
        found.add(words[1].decode())
        file.read(int(words[3]) + 2)
    missing = [key for key in keys if key not in found]
    file.write(b"".join(f"set {key} 0 0 {SIZE}\r\n".encode() + b"x" * SIZE + b"\r\n" for key in missing))
    file.flush()
    for _ in missing:
        file.readline()


def capacity(servers, *words):
    status, lines, said = answers(servers, "capacity", *words)
    return status, lines[0], said


def ended_by_a_signal():
    """No estimate is no success: in the first second, and while the keys are watched."""
    for watches in (False, True):
        with Servers(1) as servers:
            process = subprocess.Popen([MCDS, "-s", servers.list, "capacity", "--for", "1h" if not watches else "2s"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True, env=environment())
            wait_for(lambda: int(statistics(servers.paths[0])["log_watchers" if watches else "curr_connections"]) > (0 if watches else 1), "its start")
            process.send_signal(signal.SIGTERM)
            out, said = process.communicate(timeout=60)
            check(process.returncode == 75 and '"error":"' in out, f"ended by a signal, watching: {watches}: exit {process.returncode}: {out} {said}")


def main():
    random.seed(1)
    ended_by_a_signal()
    with Servers(2, "-m", "6") as servers:
        path = servers.paths[0]
        ended = threading.Event()
        pause = [0.002]  # seconds between the batches; longer if the machine is too busy for the server's log

        def load():
            with connected(path) as file:
                while not ended.wait(pause[0]):
                    ask(file)

        def stopped(text):
            """True if watching cost too much, which is noise on a busy machine, or the log lost events."""
            if "stopped: " not in text:
                return False
            pause[0] *= 2
            return True
        thread = threading.Thread(target=load)
        thread.start()
        try:
            for _ in range(5):
                status, line, said = capacity(servers.list, "--for", "5s", "--max-cost", "100%", "--at", "0.5,1,2")
                if not stopped(line.get("error", "")):
                    break
            ratios = [one["hit_ratio"] for one in line.get("estimate", [])]
            # The other server, which nobody reads, has none.
            check(status == 2 and said == "" and len(ratios) == 3, f"exit {status}: {line} {said}")
            check(ratios == sorted(ratios) and all(one["low"] <= one["hit_ratio"] <= one["high"] for one in line.get("estimate", [])), f"{line}")
            check(len(ratios) == 3 and abs(ratios[1] - line["hit_ratio"]) < 0.05 and 0 < ratios[1] < 1, f"at its own size: {line}")
            check(0 < line.get("coverage", 0) <= 1 and line.get("gets", 0) > 0 and
                  line.get("estimate_if_one_is_lost", {"low": 2})["low"] <= ratios[1], f"{line}")
            for _ in range(5):
                done = run("unix:" + path, "capacity", "--for", "4s", "--max-cost", "100%", "-o", "text")
                if not stopped(" ".join(done.stdout.split())):
                    break
            bars = [text.split()[-1] for text in done.stdout.splitlines() if text.endswith("█") or text.endswith(tuple("▏▎▍▌▋▊▉"))]
            check(len(bars) >= 4 and all(1 <= len(text) <= 30 for text in bars), f"no curve as text: {done}")
            status, line, said = capacity("unix:" + path, "--for", "4s", "--max-cost", "0")
            stopped = line.get("error", "").startswith("stopped: ") or "estimate" in line
            check(stopped and (status == 2) == ("error" in line), f"--max-cost 0: exit {status}: {line} {said}")
            check("estimate" not in line or line.get("cost", 1) <= 0, f"goes on at a cost of {line.get('cost')}: {line}")
        finally:
            ended.set()
            thread.join()


if __name__ == "__main__":
    main()
    finish()
