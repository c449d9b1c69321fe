#!/usr/bin/env python3
"""mcds hash watch: what it asks the server, and what it says while the server does not answer. Usage: hash_watch_test.py BUILD_DIR"""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS, environment, run, wait_for
from real_servers import Servers, statistics

FIELDS, INDEX_KEYS, EVERY_S = 50, 17, 0.05


def gets(servers):
    return int(statistics(servers.paths[0])["cmd_get"])


def watch(servers, *words):
    # Appended to, so that reading does not move where the next line goes.
    number = len(os.listdir(servers.directory))
    output, errors = (open(os.path.join(servers.directory, f"{name}{number}"), "a+", encoding="utf-8") for name in ("out", "err"))
    process = subprocess.Popen([MCDS, "-s", servers.list, "--timeout", "300ms", "hash", "watch", "cfg", *words, "--every",
                                f"{int(EVERY_S * 1000)}ms"], env=environment(), stdout=output, stderr=errors)
    return process, output, errors


def lines_of(file):
    file.seek(0)
    return [json.loads(line) for line in file.read().rpartition("\n")[0].splitlines()]


def asks_little(servers, words, keys):
    before, began = gets(servers), time.monotonic()
    process, output, errors = watch(servers, *words)
    wait_for(lambda: len(lines_of(output)) == (len(words) or FIELDS), "the first look")
    wait_for(lambda: gets(servers) > before + 10 * keys, "some looks")
    run(servers.list, "hash", "set", "cfg", "f1", "changed")
    wait_for(lambda: lines_of(output)[-1].get("value") == "changed", "a change")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 0, f"hash watch {words} ends with {process.returncode}")
    looks = (time.monotonic() - began) / EVERY_S + 2
    asked = gets(servers) - before
    # The first look reads more, and `hash set` is not ours.
    check(asked <= (looks + 3) * keys, f"hash watch {words}: {asked} keys asked for in {looks:.0f} intervals, of {keys} each")
    check(lines_of(output)[-1]["before"] == "v1" and lines_of(errors) == [], f"hash watch {words}: {lines_of(output)[-1]}, {lines_of(errors)}")
    run(servers.list, "hash", "set", "cfg", "f1", "v1")


def outlasts_a_pause(servers):
    process, output, errors = watch(servers)
    wait_for(lambda: len(lines_of(output)) == FIELDS, "the first look")
    servers.processes[0].send_signal(signal.SIGSTOP)
    wait_for(lambda: len(lines_of(errors)) == 1, "a warning")
    servers.processes[0].send_signal(signal.SIGCONT)
    run(servers.list, "hash", "set", "cfg", "f2", "later")
    wait_for(lambda: lines_of(output)[-1].get("value") == "later", "a change behind the pause")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 0, f"hash watch ends with {process.returncode}")
    check(len(lines_of(output)) == FIELDS + 1, f"a pause is told as {lines_of(output)[FIELDS:]}")
    check("still trying" in lines_of(errors)[0]["warning"]["message"], f"the warning: {lines_of(errors)}")


if __name__ == "__main__":
    with Servers() as one:
        run(one.list, "hash", "set", "cfg", "-", input="".join(f"f{i}\tv{i}\n" for i in range(FIELDS)), check=True)
        asks_little(one, (), FIELDS + INDEX_KEYS)
        asks_little(one, ("f1", "f7", "f9"), 3)
        outlasts_a_pause(one)
    finish()
