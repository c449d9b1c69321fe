#!/usr/bin/env python3
"""A reader of our output that pauses for longer than every timeout: the time that is spent waiting for it is nobody's, and
the answer is whole.

Usage: paused_output_test.py BUILD_DIR
"""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
from program import MCDS, environment as settings  # noqa: E402
from traffic import Memcached  # noqa: E402

MANY = 40_000  # lines, which no pipe holds
PAUSE = 2.5
LIMITS = ["--timeout", "1s"]


def run(environment, words, text=b""):
    done = subprocess.run([MCDS, *words], input=text, capture_output=True, timeout=120, check=False, env=environment)
    assert done.returncode == 0, done
    return done.stdout


def feed(process, text):
    with process.stdin as pipe:
        pipe.write(text)


def read_late(environment, words, text=b""):
    """Its exit code, output and errors, where nothing is read at first."""
    process = subprocess.Popen([MCDS, *words, *LIMITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment)
    writer = threading.Thread(target=feed, args=(process, text))
    writer.start()
    time.sleep(PAUSE)
    out, err = process.stdout.read(), process.stderr.read().decode()
    writer.join()
    return process.wait(), out, err


def whole(environment, words, text=b""):
    code, out, err = read_late(environment, words, text)
    check(code == 0 and out.count(b"\n") == MANY and not err,
          f"mcds {' '.join(words)}: exit {code}, {out.count(10)} of {MANY} lines, {err}")


def followed(environment):
    """What is put while the reader of `tail -f` pauses comes when it goes on."""
    process = subprocess.Popen([MCDS, "eventlog", "tail", "log", "-f", "-n", str(MANY), "--every", "50ms", "-o", "value", *LIMITS],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    time.sleep(PAUSE)
    run(environment, ["eventlog", "put", "log", "last"])
    lines = []
    while not lines or lines[-1] not in (b"last\n", b""):
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGTERM)
    err = process.stderr.read().decode()
    process.stdout.close()
    code = process.wait()
    check(code == 0 and len(lines) == MANY + 1 and len(set(lines)) == len(lines) and not err,
          f"eventlog tail -f: exit {code}, {len(lines)} lines, {len(set(lines))} of them different, {err}")


def main():
    with tempfile.TemporaryDirectory() as directory, Memcached("memcached", directory) as server:
        environment = settings(MCDS_SERVERS=server.address)
        server.store(0, MANY, size=100)
        keys = b"".join(b"key:%012d\n" % key for key in range(MANY))
        numbers = b"".join(b"number:%012d\n" % key for key in range(MANY))
        run(environment, ["table", "add", "table", "-"], keys)
        run(environment, ["eventlog", "put", "log", "-", "--chunk", "1h"], keys)
        run(environment, ["counter", "incr", "-"], numbers)
        whole(environment, ["item", "get", "-"], keys)
        whole(environment, ["item", "show", "-"], keys)
        whole(environment, ["counter", "get", "-"], numbers)
        whole(environment, ["counter", "incr", "-"], numbers)
        whole(environment, ["table", "has", "table", "-"], keys)
        whole(environment, ["table", "fetch", "table"])
        whole(environment, ["eventlog", "fetch", "log"])
        whole(environment, ["eventlog", "fetch", "log", "--cursor", os.path.join(directory, "cursor")])
        whole(environment, ["eventlog", "tail", "log", "-n", str(MANY)])
        whole(environment, ["where", "--probe", "-"], keys)
        followed(environment)
    finish()


if __name__ == "__main__":
    main()
