#!/usr/bin/env python3
"""item hot finds the hottest keys in order, tells reads from the look-ups of stores, names evicted keys, and ends when it is told to.

Usage: item_hot_test.py BUILD_DIR
"""
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS, environment
from real_servers import Servers, connected, statistics

KEYS = [f"page:{number}" for number in range(300)]
# As often as key n is read in a round: Zipf's law, so that each is asked for clearly more often than the next.
ROUND = [key for number, key in enumerate(KEYS) for _ in range(1 + 300 // (number + 1))]
EVENTS = 20000


def told(paths):
    """How many events the servers have told watchers of."""
    return sum(int(statistics(path)["log_watcher_sent"]) for path in paths)


def ask(file, text):
    file.write(text)
    file.flush()
    lines = [file.readline()]
    while lines[-1].startswith(b"VALUE "):
        lines += [file.readline(), file.readline()]
    return lines


def servers(stack, count, *flags):
    paths = stack.enter_context(Servers(count, *flags)).paths
    return paths, [stack.enter_context(connected(path)) for path in paths]


def watched(paths, options, load):
    """The lines of item hot while `load` runs, interrupted when the servers have told it of enough events."""
    command = [MCDS, "-s", ",".join("unix:" + path for path in paths), "item", "hot", "--for", "1h", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    before = told(paths)
    while told(paths) - before < EVENTS and process.poll() is None:
        load()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    check(process.returncode == 0, f"{command}: ends with {process.returncode}: {err}")
    return [json.loads(line) for line in out.splitlines()]


def test_hottest_in_order():
    with ExitStack() as stack:
        paths, files = servers(stack, 2)
        chance = random.Random(1)
        for number, key in enumerate(KEYS):
            ask(files[number % 2], f"set {key} 0 0 5\r\nvalue\r\n".encode())

        def load():
            for key in chance.sample(ROUND, len(ROUND)):
                ask(files[int(key.split(":")[1]) % 2], f"get {key}\r\n".encode())

        lines = watched(paths, ["-n", "5", "--prefix", "page:"], load)
        check([line["key"] for line in lines[:5]] == KEYS[:5], f"the hottest: {lines}")
        for number, line in enumerate(lines[:5]):
            check(line["server"] == "unix:" + paths[number % 2] and line["size_bytes"] == 5, f"where and how large: {line}")
            check(line["gets_per_s"] == line["events_per_s"] > 0 == line["misses_per_s"], f"nothing but hits: {line}")
        check([line["server"] for line in lines[5:]] == ["unix:" + path for path in paths], f"a line for each server: {lines[5:]}")
        check(all(0 < line["coverage"] <= 1 for line in lines[5:]), f"coverage: {lines[5:]}")


def test_misses_and_stores():
    """A store looks the key up, which is neither a read nor a miss."""
    with ExitStack() as stack:
        paths, files = servers(stack, 1)

        def load():
            for _ in range(100):
                ask(files[0], b"set stored 0 0 1\r\n1\r\n")
                ask(files[0], b"get missed\r\n")

        lines = {line.get("key", "server"): line for line in watched(paths, [], load)}
        # The watch may begin between the look and the store of one set.
        check(lines["stored"]["gets_per_s"] * 20 <= lines["stored"]["stores_per_s"] > 0, f"stored: {lines}")
        check(lines["missed"]["misses_per_s"] == lines["missed"]["gets_per_s"] > 0, f"missed: {lines}")


def test_evictions():
    with ExitStack() as stack:
        paths, files = servers(stack, 1, "-m", "2")
        value = b"x" * 5000

        def load():
            for number in range(2000):
                ask(files[0], b"set big:%d 0 0 5000\r\n%s\r\n" % (number, value))

        lines = watched(paths, ["--sort", "evictions", "-n", "3"], load)
        check(len(lines) == 4 and all(line["evictions_per_s"] > 0 for line in lines), f"evictions: {lines}")


def test_statistics_reset():
    """While it watches: fewer events were dropped then than before it began, which is no number of lost ones."""
    with ExitStack() as stack:
        paths, files = servers(stack, 1)
        answers = []

        def load():
            sent = told(paths)
            for _ in range(1000):
                ask(files[0], b"get missed\r\n")
            if told(paths) > sent and not answers:
                answers.append(ask(files[0], b"stats reset\r\n"))

        with connected(paths[0]) as slow:
            ask(slow, b"watch fetchers\r\n")
            while int(statistics(paths[0])["log_watcher_skipped"]) < 5000:
                load()
        answers.clear()
        line = watched(paths, [], load)[-1]
        check(answers == [[b"RESET\r\n"]] and line["dropped"] < 2**32 and line["coverage"] > 0, f"after stats reset: {answers} {line}")


def main():
    test_hottest_in_order()
    test_misses_and_stores()
    test_evictions()
    test_statistics_reset()


if __name__ == "__main__":
    main()
    finish()
