#!/usr/bin/env python3
"""A server that lists far more keys than it counts, and honest long lists of any keys: bounded memory, and an end.
Usage: listing_test.py BUILD_DIR"""
import contextlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from hostile import SANITIZED, execute, plain_environment
from stub import Stub

MANY = 1_000_000
MOST_KIB = 64 * 1024
BLOCK = 10_000
GET = re.compile(rb"mg [^\r]*\r\n")


class Lister:
    """`counts`: what it says in turn that it holds, the last for ever; lists MANY keys that begin with `name`, in which @
    stands for the number, and has none of them when it is asked."""

    def __init__(self, path, name, counts):
        self.counts, self.dumps, self.asked = list(counts), 0, 0
        self.name, _, self.rest = name.encode().partition(b"@")
        self.stub = Stub(self.serve, path)

    def serve(self, connection):
        given = b""
        while more := connection.recv(1 << 18):
            given += more
            lines, end, rest = given.rpartition(b"\n")
            if not end:
                continue
            given = rest
            reply, gets = GET.subn(b"EN\r\n", lines + end)
            self.asked += gets
            for line in set(reply.splitlines()) - {b"EN"}:
                if line.startswith(b"lru_crawler"):
                    self.dump(connection)
                    reply = b""
                else:
                    reply = reply.replace(line + b"\r\n", self.answer(line))
            connection.sendall(reply)

    def answer(self, line):
        if line == b"stats":
            items = self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]
            return b"STAT version 1.6.38\r\nSTAT curr_items %d\r\nSTAT time 1790000000\r\nEND\r\n" % items
        if line.startswith(b"stats "):
            return b"END\r\n"
        return {b"mn": b"MN\r\n", b"version": b"VERSION 1.6.38\r\n"}.get(line, b"ERROR\r\n")

    def dump(self, connection):
        self.dumps += 1
        block = b"".join(b"key=%s#######%04d%s exp=-1 la=1700000000 cas=7 fetch=no cls=1 size=70\n"
                         % (self.name, i, self.rest) for i in range(BLOCK))
        for i in range(MANY // BLOCK):
            connection.sendall(block.replace(b"#######", b"%07d" % i))
        connection.sendall(b"END\r\n")


@contextlib.contextmanager
def pool(*servers):
    """An environment of servers, each a name of keys and its counts."""
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        listers = [Lister(os.path.join(directory, str(i)), *server) for i, server in enumerate(servers)]
        for lister in listers:
            stack.enter_context(lister.stub)
        addresses = ",".join(f"s{i}=unix:{directory}/{i}" for i in range(len(listers)))
        yield listers, plain_environment(MCDS_SERVERS=addresses, HOME=directory, TMPDIR=directory), directory


def bounded(done, what):
    check(SANITIZED or done.kib <= MOST_KIB, f"{what}: {done.kib >> 10} MiB")


# Of every verb that lists.
VERBS = (["item", "list", "-o", "value"], ["item", "list", "--sort", "size"], ["item", "list", "--by-prefix"],
         ["item", "list", "--names", "lock"], ["item", "list", "--digest"], ["item", "remove", "--prefix", "k", "--dry-run"],
         ["item", "save", "FILE"], ["where", "--probe", "--live"], ["where", "--prune", "--live", "--dry-run"],
         ["ring", "diff", "--live", "--to", "a,b"], ["ring", "move", "--to", "s1=unix:DIR/0,s2=unix:DIR/1", "--dry-run"])


def claims_few():
    with pool(("k@", [3])) as (listers, environment, directory):
        for verb in VERBS:
            words = [word.replace("FILE", directory + "/saved").replace("DIR", directory) for word in verb]
            done = execute(words, environment)
            check(done.status in (2, 69), f"a list without end, {verb}: {done}")
            check("list was cut off at 100007 keys because the server counts only 3 items" in done.err,
                  f"a list without end, {verb}: {done}")
            bounded(done, f"a list without end, {verb}")
        check(listers[0].dumps <= len(VERBS) + 2, f"{listers[0].dumps} dumps for {len(VERBS)} verbs")
    with pool(("k@", [3]), ("n@", [3])) as (_, environment, _):
        done = execute(["where", "--guess"], environment)
        check(done.status in (0, 1), f"a list without end, --guess: {done}")
        bounded(done, "a list without end, --guess")


def is_being_filled():
    with pool(("k@", [3, 200_000, MANY])) as (_, environment, _):
        done = execute(["item", "list", "--by-prefix"], environment)
        check(done.status == 0 and done.err == "", f"a server that is being filled: {done}")


def honest():
    with pool(("k@", [MANY]), ("n@", [MANY])) as (listers, environment, directory):
        done = execute(["where", "--probe", "--live"], environment)
        check('"keys":2000000,' in done.out and '"misplaced"' in done.out, f"keys in wrong places: {done}")
        bounded(done, "keys in wrong places")
        check(listers[0].asked == 0, f"keys that one server lists were asked for, {listers[0].asked} times")
    with pool(("l" * 150 + "@", [MANY])) as (listers, environment, _):
        done = execute(["where", "--prune", "--live", "--dry-run"], environment)
        check(done.status == 0 and '"keys":0,' in done.out, f"prune: {done}")
        bounded(done, "prune")
        check(2 * MANY <= listers[0].asked <= 2.1 * MANY, f"prune asked {listers[0].asked} times")
    with pool(("p" * 200 + "@:", [MANY])) as (_, environment, _):
        done = execute(["item", "list", "--by-prefix"], environment)
        check('\n{"prefix":null,"rest":true,"keys":990000,"size_bytes":69300000,"share":0.9900,"size_median_bytes":70,' in done.out,
              f"prefixes: {done.out[-300:]}")
        check(done.out.count("\n") == 10_001 and done.status == 0, f"prefixes: {done.err}")
        check("the keys of all others are one sum" in done.err, f"prefixes: {done.err}")
        bounded(done, "prefixes")
    with pool(("lock:" + "n" * 100 + "@", [MANY])) as (_, environment, _):
        done = execute(["item", "list", "--names", "lock", "-o", "value"], environment)
        check(done.status == 0 and done.out_bytes > 100 * MANY, f"names: {done}")
        bounded(done, "names")


claims_few()
is_being_filled()
honest()
finish()
