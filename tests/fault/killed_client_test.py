#!/usr/bin/env python3
"""A client that is killed at any send or receive of the first change of a new name leaves nothing that is wrong: the next
commands of others are right, none says that something was lost, and the same change succeeds.

Usage: killed_client_test.py BUILD_DIR; needs strace.
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish
from program import MCDS, environment, traced
from real_servers import Servers

CALLS = ("connect", "sendto", "recvfrom")


def run(*words):
    return subprocess.run([MCDS, *words], capture_output=True, text=True, check=False, timeout=60)


def elements(name, field):
    """What fetch, has or get, and a second fetch say of it; all of them agree."""
    structure = "hash" if field else "table"

    def look(what):
        fetched = run(structure, "fetch", name)
        check(fetched.returncode == 0, f"{what}: fetch ends with {fetched.returncode}: {fetched.stdout}{fetched.stderr}")
        listed = {json.loads(line)[field or "member"] for line in fetched.stdout.splitlines()}
        asked = run(structure, "get" if field else "has", name, *"abcdef")
        there = {json.loads(line)[field or "member"] for line in asked.stdout.splitlines()
                 if json.loads(line).get("found" if field else "has", True)}
        check(listed == there, f"{what}: fetch lists {sorted(listed)}, and {sorted(there)} are there")
        checked = run(structure, "check", name)
        check(checked.returncode == 0, f"{what}: check ends with {checked.returncode}: {checked.stdout}{checked.stderr}")
        return listed

    return look


def array(name):
    def look(what):
        fetched = run("array", "fetch", name)
        check(fetched.returncode in (0, 1), f"{what}: fetch ends with {fetched.returncode}: {fetched.stderr}")
        answer = json.loads(fetched.stdout)
        check("complete" not in answer, f"{what}: {fetched.stdout}")
        return set(answer.get("values", []))

    return look


def eventlog(name):
    def look(what):
        fetched = run("eventlog", "fetch", name, "-o", "json")
        check(fetched.returncode == 0, f"{what}: fetch ends with {fetched.returncode}: {fetched.stderr}")
        lines = [json.loads(line) for line in fetched.stdout.splitlines()]
        check(not [line for line in lines if line.get("gap")], f"{what}: a gap is told: {fetched.stdout}")
        return {line["data"] for line in lines if "data" in line}

    return look


def calls_of(words):
    done = traced(words, "-f", "-o", "/dev/stdout")
    check(done.returncode == 0, f"{' '.join(words)}: {done.stderr}")
    counts = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", done.stdout, re.M))
    return {call: max(count for (_, name), count in counts.items() if name == call) for call in CALLS}


def try_all(kind, options, words, look_at, wanted):
    """Kills `words` of a fresh name at every one of its calls; `wanted` is what is there after it was done."""
    killed = 0
    counts = calls_of([*options, *words(f"{kind}.{options[-1]}.first")])
    for call, count in counts.items():
        for nth in range(1, count + 1):
            name = f"{kind}.{options[-1]}.{call}{nth}"
            what = f"{' '.join(options + words(name))} killed at {call} {nth}"
            done = traced([*options, *words(name)], "-f", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={nth}")
            if done.returncode != -signal.SIGKILL:
                continue
            killed += 1
            look = look_at(name)
            there = look(what)
            check(there <= wanted, f"{what}: {sorted(there)} is there")
            again = run(*options, *words(name))
            check(again.returncode == 0, f"{what}: the same again ends with {again.returncode}: {again.stderr}")
            there = look(what + ", then done again")
            check(there == wanted, f"{what}, then done again: {sorted(there)} is there")
    check(killed >= 4, f"{' '.join(options + words('NAME'))}: killed only {killed} times at {counts}")


def main():
    with Servers(3, "-m", "16") as servers:
        os.environ.update(environment(MCDS_SERVERS=servers.list))
        for protocol in ("meta", "classic"):
            options = ["--protocol", protocol]
            try_all("t", options, lambda name: ["table", "add", name, *"abcdef"], lambda name: elements(name, None), set("abcdef"))
            try_all("l", options, lambda name: ["eventlog", "put", name, "a"], eventlog, {"a"})
            if protocol == "meta" or FULL:
                try_all("h", options, lambda name: ["hash", "set", name, "a", "1"], lambda name: elements(name, "field"), set("a"))
                try_all("a", options, lambda name: ["array", "add", name, "a", "b"], array, set("ab"))


main()
finish()
