#!/usr/bin/env python3
"""TERM and INT at every system call of the verbs of a lock: no lock outlives the process, or its token was told.

Usage: lock_signal_test.py BUILD_DIR; needs strace. MCDS_TEST_FULL=1 tries every system call, otherwise those of the network,
of waiting and of writing.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish
from real_servers import start_memcached

KEYS = b"get lock:job lock:job:slot:1\r\n"
FEW = ("connect", "sendto", "recvfrom", "poll", "write", "rt_sigprocmask", "rt_sigtimedwait")


def start_server(directory):
    path = os.path.join(directory, "m1.sock")
    return start_memcached(path, "-m", "16"), path


def ask(path, command):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(command)
        data = b""
        while not data.endswith((b"END\r\n", b"OK\r\n", b"STORED\r\n")) and b"ERROR" not in data:
            data += connection.recv(4096)
    return data


def calls_of(words):
    """How often each system call is made by the main thread when nothing comes in between."""
    done = subprocess.run(["strace", "-qq", "-o", "/dev/stdout", mcds, *words], capture_output=True, text=True, check=False)
    counts = {}
    for name in re.findall(r"^(\w+)\(", done.stdout, re.M):
        counts[name] = counts.get(name, 0) + 1
    return counts


def try_all(path, words, prepare, least):
    tried = 0
    prepare()
    for call, count in calls_of(words).items():
        if call in ("execve", "exit_group") or (not FULL and call not in FEW):
            continue
        full = FULL
        for nth in range(1, count + 1 if full else min(count, 4) + 1):
            for name in ("SIGTERM", "SIGINT") if full else ("SIGTERM",):
                prepare()
                before = ask(path, KEYS)
                done = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal={name}:when={nth}",
                                       mcds, *words], capture_output=True, text=True, check=False, timeout=60)
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
        process = subprocess.Popen([mcds, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while "SigBlk" not in open(f"/proc/{process.pid}/status").read() or int(
                re.search(r"SigBlk:\s*(\w+)", open(f"/proc/{process.pid}/status").read())[1], 16) == 0:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        check(process.returncode == -signal.SIGTERM, f"{' '.join(words)} while waiting: {process.returncode}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        server, path = start_server(directory)
        os.environ["MCDS_SERVERS"] = f"m1=unix:{path}"
        try:
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
        finally:
            server.kill()
            server.wait()


mcds = os.path.abspath(os.path.join(sys.argv[1], "tools", "mcds"))
main()
finish()
