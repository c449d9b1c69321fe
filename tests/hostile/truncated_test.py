#!/usr/bin/env python3
"""Every kind of reply, cut off at each of its bytes: the answer is what it is to the whole reply, or that there is none.

Usage: truncated_test.py BUILD_DIR
"""
import os
import socket
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from stub import Stub, pass_on
from hostile import Server, execute, judged, plain_environment

PROTOCOLS = ("auto", "meta", "classic") if FULL else ("auto", "classic")
SETUP = ["counter incr k 41", "counter set n 5", "lock acquire k --ttl 60s", "hash set k a 1", "table add k a", "array add k a", "eventlog put k a",
         "visitors hit k", "cache run k --ttl 60s -- echo out"]
# Each after SETUP; together they hear every kind of reply there is, with and without what they ask for.
VERBS = ["counter incr k", "counter decr n", "counter get k", "counter get none", "counter set n 6", "counter take k", "counter remove k",
         "counter limit l --max 2 --per 1h", "lock acquire k", "lock acquire free --ttl 20s", "lock show k", "lock release k --force", "hash get k a",
         "hash fetch k", "hash remove k a", "table has k a", "table add k b", "array fetch k", "array add k b", "eventlog fetch k",
         "eventlog put k b", "visitors value k", "visitors hit k", "cache show k", "cache remove k", "servers", "where k --probe"]
# Of which the whole answer is the same each time.
READS = {"counter get k", "counter get none", "hash get k a", "hash fetch k", "table has k a", "array fetch k", "eventlog fetch k"}
# What a cut reply may still be told as: input that makes no sense (65), nobody there, try again, refused, unknown; `servers` and
# `where --probe` find a problem (2).
HONEST = {2, 65, 69, 75, 76, 80}


class CuttingProxy(Stub):
    """Passes everything on, but only so many bytes of all that the server says; then it closes every connection."""

    def __init__(self, path, server_path):
        self.server_path = server_path
        self.left = self.passed = 0
        self.lock = threading.Lock()
        super().__init__(self.talk, path)

    def begin(self, left):
        with self.lock:
            self.left, self.passed = left, 0

    def talk(self, client):
        def some(said):
            with self.lock:
                self.passed += len(said)
                if len(said) > self.left:
                    client.sendall(said[:self.left])
                    self.left = 0
                    raise OSError("cut")
                self.left -= len(said)
                return said

        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server_path)
            pass_on(client, server, back=some)


def snapshot(server):
    found = {key: server.item(key) for key in server.keys()}
    return {key: item for key, item in found.items() if item is not None}


def main():
    with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
        for line in SETUP:
            done = server.run(*line.split())
            check(done.status == 0, f"{line}: {done}")
        stored = snapshot(server)
        path = os.path.join(directory, "proxy")
        proxy = CuttingProxy(path, server.path)
        environment = plain_environment(MCDS_SERVERS=f"m=unix:{path}", HOME=directory)

        def run(verb, protocol, left, timeout="100ms"):
            server.flush()
            for key, (flags, value) in stored.items():
                server.command(f"set {key}", value, flags)
            proxy.begin(left)
            return execute([*verb.split(), "--protocol", protocol, "--timeout", timeout], environment)

        for verb in VERBS:
            for protocol in PROTOCOLS if FULL or VERBS.index(verb) % 3 == 0 else PROTOCOLS[:1]:
                whole = run(verb, protocol, 1 << 30, "5s")
                judged(whole, f"{verb}, {protocol}")
                said = proxy.passed
                check(whole.status in (0, 1, 75) or protocol != "auto", f"{verb}, {protocol}: {whole}")
                if whole.status not in (0, 1, 75):
                    continue
                for left in range(said) if FULL else [*range(min(said, 30)), *range(30, said, 29)]:
                    done = run(verb, protocol, left)
                    judged(done, f"{verb}, {protocol}, cut after {left} of {said} bytes")
                    check(done.status in HONEST | {whole.status}, f"{verb}, {protocol}, cut after {left} of {said} bytes: {done}")
                    if verb in READS and done.status == whole.status:
                        check(done.out == whole.out, f"{verb}, {protocol}, cut after {left} of {said} bytes: {done}")
    finish(40)


if __name__ == "__main__":
    main()
