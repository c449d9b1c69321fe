#!/usr/bin/env python3
"""eventlog fetch --give-up: an event that always fails does not block those behind it, whatever dies at any step.

Usage: give_up_test.py BUILD_DIR
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
import program
from program import environment
from real_servers import Servers

EVENTS = [f"e{number}" for number in range(8)]
# Records each event that it is given; fails at `poison`.
CONSUMER = 'while read -r line; do echo "$line" >> "$SEEN"; test "$line" != "$POISON" || exit 9; done'
# Ends the program at the N-th of the calls that change what others see.
DIES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>
static void step(void) {
  static int left = -1;
  if (left < 0) left = atoi(getenv("DIES_AT"));
  if (--left == 0) kill(getpid(), 9);
}
#define LAST(type, name, parameters, arguments) \
  type name parameters { step(); return ((type(*) parameters)dlsym(RTLD_NEXT, #name)) arguments; }
int kill(pid_t, int);
LAST(ssize_t, send, (int fd, const void* bytes, size_t size, int flags), (fd, bytes, size, flags))
LAST(ssize_t, sendmsg, (int fd, const struct msghdr* message, int flags), (fd, message, flags))
LAST(int, rename, (const char* from, const char* to), (from, to))
LAST(int, fsync, (int fd), (fd))
"""


class Log:
    def __init__(self, directory, server, name, poison="none"):
        self.server, self.name = server, name
        self.seen, self.cursor = (os.path.join(directory, f"{name}.{kind}") for kind in ("seen", "cursor"))
        self.poison = poison
        self.mcds("eventlog", "put", name, "-", "-q", input="\n".join(EVENTS))

    def mcds(self, *words, **more):
        return program.run(self.server, *words, **more)

    def fetch(self, *options, command=("sh", "-c", CONSUMER), **more):
        return program.run(self.server, "eventlog", "fetch", self.name, "--cursor", self.cursor, "-o", "value", *options, "--", *command,
                           env=environment(SEEN=self.seen, POISON=self.poison, **more))

    def delivered(self):
        with open(self.seen, encoding="utf-8") as file:
            return file.read().split()

    def failed(self):
        return self.mcds("eventlog", "fetch", self.name + ".failed", "-o", "value").stdout.split()


def poison_blocks(directory, server):
    log = Log(directory, server, "blocked", "e3")
    for _ in range(6):
        check(log.fetch().returncode == 9 and log.delivered()[-1] == "e3", "without --give-up a poison event blocks")
    check(log.failed() == [], "without --give-up nothing is given up")


def poison_in_a_batch(directory, server):
    for limit in ([], ["--limit", "1"], ["--limit", "5"]):
        log = Log(directory, server, "poison" + "".join(limit[1:]), "e3")
        codes = []
        while not codes or codes[-1] != 0 and len(codes) < 40:
            codes.append(log.fetch("--give-up", "3", *limit).returncode)
        while log.delivered()[-1] != EVENTS[-1] and len(codes) < 60:
            codes.append(log.fetch("--give-up", "3", *limit).returncode)
        seen = log.delivered()
        check(set(seen) == set(EVENTS), f"{limit}: none is skipped: {seen}, {codes}")
        check(all(seen.count(event) <= 2 for event in EVENTS if event != "e3") and seen.count("e3") in (3, 4),
              f"{limit}: at most one repetition: {seen}")
        check(log.failed() == ["e3"], f"{limit}: in the log of failed events: {log.failed()}")
        check(codes.count(2) == 1, f"{limit}: giving up is told by the exit code: {codes}")
        check(log.fetch("--give-up", "3").returncode == 0 and log.delivered() == seen, f"{limit}: nothing comes again")


def what_does_not_count(directory, server):
    log = Log(directory, server, "uncounted")
    for command, code in ((("/nowhere/command",), 127), (("sh", "-c", "kill -TERM $$"), 143), (("sh", "-c", "kill -INT $$"), 130)):
        for _ in range(4):
            done = log.fetch("--give-up", "2", "--limit", "1", command=command)
            check(done.returncode == code, f"{command}: {done}")
    check(log.failed() == [] and log.fetch("--give-up", "2").returncode == 0 and log.delivered() == EVENTS, "a failure of another kind counts for none")


def kept_as_put(directory, server):
    log = Log(directory, server, "kinds", "none")
    values = [b'{"a":[1,2]}', b"text \xff\n", b'"quoted"', b""]
    for value, flags in ((values[0], ["--json"]), (values[1], []), (values[2], []), (values[3], [])):
        path = os.path.join(directory, "value")
        with open(path, "wb") as file:
            file.write(value)
        log.mcds("eventlog", "put", "kinds", "@" + path, *flags)
    while log.fetch("--give-up", "1", command=("false",)).returncode != 0:
        pass
    strip = lambda done: [{name: value for name, value in json.loads(line).items() if name.startswith("data")} for line in done.stdout.splitlines()]
    put, failed = (strip(log.mcds("eventlog", "fetch", name)) for name in ("kinds", "kinds.failed"))
    check(len(put) == len(EVENTS) + len(values) and put == failed, f"what is given up holds what was put: {put} {failed}")


def dies_at_every_step(directory, server):
    source, library = (os.path.join(directory, name) for name in ("dies.c", "dies.so"))
    with open(source, "w", encoding="ascii") as file:
        file.write(DIES)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"], check=True)
    died, step = True, 0
    while died:
        step += 1
        log = Log(directory, server, f"dies{step}", "e1")
        log.fetch("--give-up", "2")  # the batch
        log.fetch("--give-up", "2")  # once
        done = log.fetch("--give-up", "2", LD_PRELOAD=library, DIES_AT=str(step),
                         ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0")
        died = done.returncode == -signal.SIGKILL
        for _ in range(3):
            log.fetch("--give-up", "2")
        seen = log.delivered()
        check(set(seen) == set(EVENTS), f"dead at step {step}: none is skipped: {seen}")
        check(all(seen.count(event) <= 3 for event in EVENTS if event != "e1"), f"dead at step {step}: at most one repetition more: {seen}")
        check(log.failed() == ["e1"], f"dead at step {step}: {log.failed()}, {done}")
    check(step > 10, f"only {step} steps")


def refused(directory, server):
    log = Log(directory, server, "refused")
    for words in (["--give-up", "0", "--cursor", log.cursor, "--", "true"], ["--give-up", "2", "--cursor", log.cursor], ["--give-up", "2", "--", "true"]):
        done = log.mcds("eventlog", "fetch", "refused", *words)
        check(done.returncode == 64 and done.stdout == "", f"{words}: {done}")


def main():
    with Servers() as servers:
        for test in (poison_blocks, poison_in_a_batch, what_does_not_count, kept_as_put, dies_at_every_step, refused):
            test(servers.directory, servers.list)
    finish()


if __name__ == "__main__":
    main()
