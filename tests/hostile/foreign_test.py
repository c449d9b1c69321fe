#!/usr/bin/env python3
"""Another program's values under our keys, in one copy or in all: whoever only reads, or is refused, leaves them as they are.
Usage: foreign_test.py BUILD_DIR"""
import contextlib
import itertools
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from hostile import Server, execute, judged, plain_environment

FOREIGN = ((0, b"hello world"), (7, b'{"a":1}\n'))
# What makes it, and what does not change another program's value.
STRUCTURES = {
    "eventlog": (["put", "N", "e1"], [["fetch", "N"], ["tail", "N"], ["info", "N"]]),
    "array": (["add", "N", "a", "b"], [["fetch", "N"], ["count", "N"], ["compact", "N"], ["drop", "N"]]),
    "visitors": (["hit", "N", "--period", "1d"], [["value", "N"], ["hit", "N", "--period", "2d"]]),
    "counter": (["incr", "N", "--exact"], [["get", "N"], ["incr", "N"], ["set", "N", "7"], ["remove", "N"]]),
    "cache": (["run", "N", "--", "echo", "hi"], [["show", "N"], ["expire", "N"]]),
    "lock": (["acquire", "N", "--ttl", "1m"], [["show", "N"], ["acquire", "N", "-w", "0"]]),
}


def leaves(servers, environment, copies, structure):
    make, verbs = STRUCTURES[structure]

    def run(words):
        words = [f"N{copies}" if word == "N" else word for word in words]
        return execute([structure, *words, "--copies", str(copies)], environment)

    done = run(make)
    check(done.status == 0, f"{structure} {make} in {copies} copies: {done}")
    stored = {(number, key): server.item(key) for number, server in enumerate(servers) for key in server.keys()}
    for key in sorted({key for _, key in stored}):
        holders = [number for number, held in stored if held == key]
        for put in ([holders[:1], holders] if len(holders) > 1 else [holders]):
            for (flags, value), words in zip(itertools.cycle(FOREIGN), verbs):
                for server in servers:
                    server.flush()
                for (number, held), item in stored.items():
                    servers[number].command(f"set {held}", item[1], item[0])
                for number in put:
                    servers[number].command(f"set {key}", value, flags)
                done = run(words)
                what = f"{value!r} under {key} in {len(put)} of {copies} copies: {structure} {words}"
                judged(done, what)
                for number in put:
                    check(servers[number].item(key) == (flags, value), f"{what} left {servers[number].item(key)}, {done}")


def put_beside_foreign_conf(servers, environment):
    """Who needs to note the shape of a log finds another program's value there: 65, and it stays."""
    servers[0].command("set eventlog:M:conf", b"hello world")
    done = execute(["eventlog", "put", "M", "e1", "-s", "unix:" + servers[0].path], environment)
    check(done.status == 65 and "eventlog:M:conf" in done.err, f"another program's eventlog:M:conf: {done}")
    check(servers[0].item("eventlog:M:conf") == (0, b"hello world"), "another program's eventlog:M:conf was overwritten")


def main():
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        servers = Server.several(3, directory, stack)
        environment = plain_environment(MCDS_SERVERS=",".join(f"unix:{server.path}" for server in servers), HOME=directory)
        for structure in STRUCTURES:
            # With copies a server's first minutes do not count for locks.
            for copies in (1, 2, 3) if structure in ("counter", "table", "hash") else (1,):
                leaves(servers, environment, copies, structure)
        put_beside_foreign_conf(servers, environment)
    finish()


if __name__ == "__main__":
    main()
