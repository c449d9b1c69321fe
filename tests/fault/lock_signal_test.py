#!/usr/bin/env python3
"""TERM and INT at every system call of the verbs of a lock: no lock outlives the process, or its token was told.

Usage: lock_signal_test.py BUILD_DIR; needs strace. MCDS_TEST_FULL=1 tries every system call, otherwise those of the network,
of waiting and of writing.
"""
import collections
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish
from program import MCDS, environment, traced, wait_for
from real_servers import Servers, connected

KEYS = b"get lock:job lock:job:slot:1\r\n"
FEW = ("connect", "sendto", "recvfrom", "poll", "write", "rt_sigprocmask", "rt_sigtimedwait")


def ask(path, command):
    with connected(path) as file:
        file.write(command)
        file.flush()
        data = b""
        while not data.endswith((b"END\r\n", b"OK\r\n", b"STORED\r\n")) and b"ERROR" not in data:
            data += file.readline()
    return data


def calls_of(words):
    """How often each system call is made by the main thread when nothing comes in between."""
    done = traced(words, "-o", "/dev/stdout")
    return collections.Counter(re.findall(r"^(\w+)\(", done.stdout, re.M))


def try_all(path, words, prepare, least):
    tried = 0
    prepare()
    for call, count in calls_of(words).items():
        if call in ("execve", "exit_group") or (not FULL and call not in FEW):
            continue
        for nth in range(1, count + 1 if FULL else min(count, 4) + 1):
            for name in ("SIGTERM", "SIGINT") if FULL else ("SIGTERM",):
                prepare()
                before = ask(path, KEYS)
                done = traced(words, "-o", "/dev/null", "-e", f"inject={call}:signal={name}:when={nth}")
                held = ask(path, KEYS)
                tried += 1
                what = f"{' '.join(words)}: {name} at {call} {nth}: exit {done.returncode}"
                if held == b"END\r\n" or held == before:
                    check(True, "")
                    continue
                tokens = re.findall(rb"\n([a-f][0-9a-f]{15}\S*) ", held)
                told = [token for token in tokens if token.decode() in done.stdout + done.stderr]
                check(tokens and tokens == told,
                      f"{what}: the lock is held and nobody was told: {done.stdout}{done.stderr}")
    print(f"{' '.join(words)}: {tried} signals")
    check(tried >= least, f"{' '.join(words)}: only {tried} system calls were tried")


def check_waiting(path):
    """One that waits for a lock ends at once, and is none the wiser for the next."""
    ask(path, b"set lock:job 0 0 26\r\na000000000000000 {\"pid\":1}\r\n")
    for words in (["lock", "acquire", "job", "-w", "inf"], ["lock", "run", "job", "-w", "inf", "--", "true"]):
        process = subprocess.Popen([MCDS, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def blocks(pid=process.pid):
            with open(f"/proc/{pid}/status", encoding="ascii") as file:
                return int(re.search(r"SigBlk:\s*(\w+)", file.read())[1], 16)

        wait_for(blocks, f"{' '.join(words)} waits")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        check(process.returncode == -signal.SIGTERM, f"{' '.join(words)} while waiting: {process.returncode}")


def main():
    with Servers(1, "-m", "16") as servers:
        path, = servers.paths
        os.environ.update(environment(MCDS_SERVERS=servers.list))

        def forget():
            ask(path, b"flush_all\r\n")

        def hold():
            ask(path, b"set lock:job 0 60 26\r\na000000000000000 {\"pid\":1}\r\n")

        try_all(path, ["lock", "acquire", "job", "--ttl", "60s"], forget, 8)
        try_all(path, ["lock", "acquire", "job", "--ttl", "60s", "--slots", "2"], forget, 8)
        try_all(path, ["lock", "run", "job", "--ttl", "60s", "--", "true"], forget, 8)
        try_all(path, ["lock", "run", "job", "--ttl", "60s", "--slots", "2", "--", "true"], forget, 8)
        try_all(path, ["lock", "renew", "job", "--token", "a000000000000000"], hold, 6)
        try_all(path, ["lock", "release", "job", "--token", "a000000000000000"], hold, 6)
        check_waiting(path)


main()
finish()
