#!/usr/bin/env python3
"""Seeded lists of arguments, most of them nonsense: no signal, no undocumented exit code, bounded time and memory.

Usage: arguments_test.py BUILD_DIR; MCDS_TEST_SEED and MCDS_TEST_ARGUMENTS (how many lists: 1200) choose which.
"""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from hostile import DOCUMENTED, MCDS, MOST_KIB, MOST_SECONDS, SANITIZED, Server

SEED = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))
COUNT = int(os.environ.get("MCDS_TEST_ARGUMENTS", "1200" if FULL else "600"))
# They wait for somebody, or start servers.
ENDLESS = {"sandbox", "-f", "--follow", "--watch", "watch", "--every"}
# They look for a while, which is given.
LOOKING = {"doctor", "capacity"}
LONGEST = 60  # seconds
ODD = ["", "-", "--", "-1", "0", "1", "9007199254740993", "18446744073709551616", "1e309", "nan", "17179869184G", "1h30m", "100y",
       "@nan", "@9e99", "2026-11-21T04:08:53Z", "30%", "101%", "a", "a:b", "x" * 251, "x" * 59 + "ü" * 9, "\x1b[31m", "\udcff\udcfe",
       "a b", "a\tb", "a\nb", "{}", "[1,2]", "[" * 200, "null", "\"\\ud800\"", "@/dev/null", "@/nowhere", "@/dev/zero", "@@x", "*", "..",
       "unix:/nowhere", "[::1]:1", "127.0.0.1:1/?65535", "=", "/", "%", "%00", "json", "text", "value", "meta", "classic", "libmemcached"]


def words_of(node, found):
    """Every word the program says of itself: commands, verbs, options, choices."""
    if isinstance(node, dict):
        for value in node.values():
            words_of(value, found)
    elif isinstance(node, list):
        for value in node:
            words_of(value, found)
    elif isinstance(node, str) and len(node) < 40 and "\n" not in node:
        found.update(node.replace(",", " ").replace("|", " ").split())
    return found


def lists(commands, words, rng):
    options = sorted(word for word in words if word.startswith("-"))
    others = sorted(words - set(options))
    while True:
        arguments = list(rng.choice(commands)) if rng.random() < 0.9 else []
        for _ in range(rng.randrange(6)):
            kind = rng.random()
            source = options if kind < 0.4 else ODD if kind < 0.8 else others
            arguments.append(rng.choice(source))
        if rng.random() < 0.3:
            rng.shuffle(arguments)
        if rng.random() < 0.2:
            arguments += ["--", "true"]
        if LOOKING & set(arguments):
            arguments += ["--for", "1s"]
        if not ENDLESS & set(arguments) and not any(word.startswith("-w") or word == "--wait" for word in arguments):
            yield [word.encode("utf-8", "surrogateescape") for word in arguments]


def main():
    print(f"MCDS_TEST_SEED={SEED}")
    rng = random.Random(SEED)
    described = json.loads(subprocess.run([MCDS, "__describe"], capture_output=True, check=True).stdout)
    commands = [[command["name"], *([verb["name"]] if verb.get("name") else [])]
                for command in described["commands"] for verb in command.get("verbs", [{}])]
    words = words_of(described, set())
    with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
        work = os.path.join(directory, "work")
        os.mkdir(work)
        os.chdir(work)
        log = os.open(os.path.join(directory, "log"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
        null = os.open("/dev/null", os.O_RDWR)
        environment = {**server.environment, "RES_OPTIONS": "attempts:1 timeout:1"}
        actions = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        for _, arguments in zip(range(COUNT), lists(commands, words, rng)):
            os.ftruncate(log, 0)
            try:
                pid = os.posix_spawn(MCDS, ["mcds", *arguments], environment, file_actions=actions)
            except ValueError:
                continue  # a NUL
            signal.signal(signal.SIGALRM, lambda *_, pid=pid: os.kill(pid, signal.SIGKILL))
            signal.alarm(LONGEST)
            _, status, usage = os.wait4(pid, 0)
            signal.alarm(0)
            code = os.waitstatus_to_exitcode(status)
            fine = code in DOCUMENTED and code != 70
            if not SANITIZED:
                fine = fine and usage.ru_utime + usage.ru_stime <= MOST_SECONDS and usage.ru_maxrss <= MOST_KIB
            said = os.pread(log, 2000, 0) if not fine or os.fstat(log).st_size > 0 else b""
            fine = fine and b"Sanitizer" not in said and b"runtime error" not in said and b"please report this" not in said
            check(fine, f"mcds {arguments} ends with {code}, {usage.ru_utime + usage.ru_stime:.1f} s, {usage.ru_maxrss >> 10} MiB: {said}")
            check(not said or not any(c < 32 and c != 10 or c == 127 for c in said), f"mcds {arguments} says {said}")
    finish()


if __name__ == "__main__":
    main()
