#!/usr/bin/env python3
"""Servers that answer the greeting with an error line and close: what was sent behind it is sent again only if it cannot have been
applied. Usage: closing_test.py BUILD_DIR
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish  # noqa: E402
from stub import Stub  # noqa: E402

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
ERROR = b"CLIENT_ERROR malformed request\r\n"
NAMES = 3000  # so many that they are not sent at once


class Counters(Stub):
    """Every key is a counter, in classic words."""

    def __init__(self, path):
        self.values, self.connections, self.counted = {}, 0, 0
        super().__init__(self.serve_all, path)

    def serve_all(self, client):
        self.connections += 1
        first = self.connections == 1
        with client.makefile("rb") as requests:
            while line := requests.readline():
                if not self.serve_line(client, line.split(), first):
                    return

    def serve_line(self, client, words, _first):
        client.sendall(self.answer(words))
        return True

    def answer(self, words):
        if words[0] == b"version":
            return b"VERSION 1.0\r\n"
        if words[0] == b"get":
            known = b"what-server" not in words[1]
            return b"".join(b"VALUE %s 0 1\r\n0\r\n" % key for key in words[1:] if known) + b"END\r\n"
        if words[0] == b"incr":
            self.counted += 1
            self.values[words[1]] = self.values.get(words[1], 0) + int(words[2])
            return b"%d\r\n" % self.values[words[1]]
        return ERROR


class ClosesOnError(Counters):
    """As mcrouter."""

    def serve_line(self, client, words, _first):
        answer = self.answer(words)
        client.sendall(answer)
        return answer != ERROR


class DiesBehind(Counters):
    """Its first connection counts everything, and ends when nothing but the first answer has left."""

    def serve_line(self, client, words, first):
        answer = self.answer(words)
        if not first:
            client.sendall(answer)
        elif words[0] == b"mn" and not self.values:
            client.sendall(answer)
            self.values[b"mn"] = 1
        return not first or self.counted < NAMES


class OnlyErrors(Counters):
    def serve_line(self, client, words, _first):
        client.sendall(ERROR)
        return False


def incr(server, *options, names=NAMES):
    server.connections = server.counted = 0
    lines = "".join(f"n{i}\n" for i in range(names))
    path = server.socket.getsockname()
    return subprocess.run([MCDS, "counter", "incr", "-", "-s", f"unix:{path}", *options], input=lines, capture_output=True, text=True,
                          timeout=60, check=False)


def main():
    with tempfile.TemporaryDirectory() as directory:
        with ClosesOnError(os.path.join(directory, "closes")) as server:
            for names in (1, NAMES):
                done = incr(server, names=names)
                check(done.returncode == 0 and server.counted == names, f"{names} names: {done.returncode} {done.stderr}, {server.counted}")
                check(server.connections == 4, f"{names} names: the greeting, two questions, and all in classic: {server.connections}")
            done = incr(server, "--protocol", "classic")
            check(done.returncode == 0 and server.connections == 1, f"classic: {done.returncode}, {server.connections}")
            done = incr(server, "--protocol", "meta", names=1)
            check(done.returncode == 76 and "--protocol auto" in done.stderr and server.counted == 0, f"meta: {done}")
        with DiesBehind(os.path.join(directory, "dies")) as server:
            done = incr(server)
            check(done.returncode == 80 and server.counted == NAMES,
                  f"it may have counted: {done.returncode} {done.stderr[:300]}, {server.counted}")
        with OnlyErrors(os.path.join(directory, "errors")) as server:
            done = incr(server, names=1)
            check(done.returncode in (69, 76, 80) and server.connections < 10, f"errors only: {done}, {server.connections}")
    finish()


if __name__ == "__main__":
    main()
