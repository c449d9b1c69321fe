#!/usr/bin/env python3
"""A server that answers every command with the same odd words: each verb, each answer, both protocols. Usage: odd_test.py BUILD_DIR

No answer of another command is success, nothing loops, nothing crashes.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish  # noqa: E402
from stub import Stub  # noqa: E402

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
STORES = (b"add", b"set", b"replace", b"append", b"prepend", b"cas")

ANSWERS = [b"STORED\r\n", b"NOT_STORED\r\n", b"EXISTS\r\n", b"NOT_FOUND\r\n", b"DELETED\r\n", b"TOUCHED\r\n", b"END\r\n",
           b"OK\r\n", b"5\r\n", b"VALUE k 0 1\r\nv\r\nEND\r\n", b"HD\r\n", b"EN\r\n", b"NF\r\n", b"EX\r\n",
           b"VA 1 kk\r\n5\r\n", b"MN\r\n", b"ERROR\r\n", b"ERROR no matching command\r\n", b"CLIENT_ERROR bad\r\n",
           b"SERVER_ERROR down\r\n", b"220 smtp ready\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"-ERR unknown command\r\n",
           b"SSH-2.0-OpenSSH_9\r\n", b"\x15\x03\x03\x00\x02\x02\x28", b"\r\n", b"VERSION 1.6.18\r\n", b"",
           b"18446744073709551616\r\n", b"-1\r\n", b"VALUE k 0 99999999999999999999\r\n", b"VALUE k 0 18446744073709551615\r\n",
           b"VA 18446744073709551615 kk\r\n", b"STAT a b\r\nEND\r\n", b"STORED\n", b"5\n"]

# The words of the server with which a verb may end well, or say that there is none.
VERBS = {
    "counter incr k": {b"5\r\n"},
    "counter incr k --exact": {b"STORED\r\n"},
    "counter decr k": {b"5\r\n", b"NOT_FOUND\r\n"},
    "counter get k": {b"END\r\n"},
    "counter remove k": {b"DELETED\r\n", b"NOT_FOUND\r\n"},
    "counter limit k --max 2 --per 1h": {b"5\r\n"},
    "lock acquire k --ttl 20s": {b"STORED\r\n", b"HD\r\n"},
    "hash set k a 1": {b"STORED\r\n"},
    "hash get k a": {b"END\r\n"},
    "hash remove k a": {b"DELETED\r\n", b"NOT_FOUND\r\n"},
    "table add k a": {b"STORED\r\n"},
    "table fetch k": {b"END\r\n"},
    "array add k a": {b"STORED\r\n"},
    "array fetch k": {b"END\r\n"},
    "eventlog put k a": {b"STORED\r\n"},
    "eventlog fetch k": {b"END\r\n"},
    "visitors hit k": {b"5\r\n", b"STORED\r\n"},
    "visitors value k": {b"END\r\n"},
    "cache remove k": {b"END\r\n", b"EN\r\n"},
    "counter set k 5": {b"STORED\r\n"},
    "counter take k": {b"END\r\n", b"EN\r\n"},
    "lock show k": {b"END\r\n", b"EN\r\n"},
    "lock release k --force": {b"DELETED\r\n", b"NOT_FOUND\r\n", b"END\r\n", b"EN\r\n"},
    "hash fetch k": {b"END\r\n"},
    "table has k a": {b"END\r\n"},
    "array count k": {b"END\r\n"},
    "cache show k": {b"END\r\n", b"EN\r\n"},
    "eventlog tail k": {b"END\r\n"},
    "eventlog info k": {b"END\r\n"},
}
HONEST = {65, 69, 75, 76, 77, 79, 80}


class OddServer(Stub):
    """`greets`: it answers the greeting as memcached does, and the rest oddly. An empty answer closes."""

    def __init__(self, path):
        self.answer, self.greets = b"", False
        super().__init__(self.answer_all, path)

    def answer_all(self, client):
        try:
            with client.makefile("rb") as requests:
                while line := requests.readline():
                    words = line.split()
                    if words and words[0] in STORES and len(words) > 4:
                        requests.read(int(words[4]) + 2)
                    greeting = {b"mn": b"MN\r\n", b"version": b"VERSION 1.6.18\r\n"}.get(words[0]) if words else None
                    answer = greeting if greeting and self.greets else self.answer
                    if not answer:
                        return
                    client.sendall(answer)
        except ValueError:  # half a command
            pass


def judge(path, verb, answer, protocol, greets):
    what = f"{verb}, {protocol}, {'greeted, ' if greets else ''}{answer!r}"
    words = [MCDS, *verb.split(), "-s", f"unix:{path}", "--protocol", protocol, "--timeout", "300ms"]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=15,
                              check=False)
    except subprocess.TimeoutExpired:
        check(False, f"{what}: no end")
        return
    right = HONEST | ({0, 1} if answer in VERBS[verb] else set())
    check(done.returncode in right, f"{what}: exit {done.returncode} {done.stdout[:200]} {done.stderr[:200]}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "odd")
        server = OddServer(path)
        for number, answer in enumerate(ANSWERS):
            for protocol, greets in (("auto", False), ("auto", True), ("meta", True), ("classic", False)):
                for place, verb in enumerate(VERBS):
                    if not FULL and (number + place) % 4:
                        continue
                    server.answer, server.greets = answer, greets
                    judge(path, verb, answer, protocol, greets)
    finish(60)


if __name__ == "__main__":
    main()
