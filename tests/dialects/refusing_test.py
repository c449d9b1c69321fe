#!/usr/bin/env python3
"""A real memcached behind a proxy that refuses one command, each command in turn, with each kind of answer. Usage: refusing_test.py
BUILD_DIR

Each verb ends well, or says what was refused; what is refused leaves nothing behind; no change is applied twice.
"""
import collections
import itertools
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish  # noqa: E402
from dialect import STORES, Dialect, DialectServer, Link  # noqa: E402
from program import MCDS, clean_environment  # noqa: E402
from real_servers import Servers, keys  # noqa: E402

REFUSED = [[b"mn"], [b"me"], [b"gat", b"gats"], [b"touch"], [b"version"], [b"stats"], [b"gets"], [b"cas"], [b"add"], [b"set"],
           [b"replace"], [b"append"], [b"incr", b"decr"], [b"delete"], [b"md"], [b"ma"], [*STORES, b"ms", b"ma", b"incr", b"decr", b"delete"]]
ANSWERS = [b"ERROR\r\n", b"CLIENT_ERROR not allowed\r\n", b"SERVER_ERROR out of memory storing object\r\n", b""]
CHANGES = (*STORES, b"incr", b"decr", b"delete", b"touch", b"ms", b"ma", b"md")
VERBS = ("counter incr %", "counter incr % --exact", "counter set % 5", "counter limit % --max 5 --per 1h", "hash set % f v",
         "table add % m", "array add % one", "eventlog put % e", "visitors hit %", "item set % v", "item set % v --if-absent",
         "item set % v --ttl 1h", "item get %", "item show %", "lock run % --ttl 20s -- true", "where --probe %", "servers", "cache run % -- true")
# 69: what answers nothing but errors; 80: the connection ended behind a change.
HONEST = {0, 1, 69, 75, 76, 77}


class Refusing(Link):
    def answer(self, line):
        words = line.split()
        if words and words[0] in self.dialect.refused:
            # As a server does: the data of a command it does not know are commands too.
            if words[0] in STORES and len(words) > 4 and not self.dialect.refusal.startswith(b"ERROR"):
                self.requests.read(int(words[4]) + 2)
            if words[0] == b"ms" and not self.dialect.refusal.startswith(b"ERROR"):
                self.requests.read(int(words[2]) + 2)
            return self.dialect.refusal
        answer = super().answer(line) if words else b"ERROR\r\n"
        if words and words[0] in CHANGES and (answer[:1].isdigit() or answer.startswith((b"STORED", b"HD", b"VA", b"DELETED"))):
            self.dialect.applied[bytes(line)] += 1
        return answer

    def meta(self, words, line):
        if self.dialect.meta == "none":
            return b"ERROR\r\n"
        return self.ask(line, self.requests.read(int(words[2]) + 2) if words[0] == b"ms" else b"")

    def classic(self, words, line, data):
        known = words[0] in (*STORES, b"get", b"gets", b"incr", b"decr", b"delete", b"touch", b"stats")
        return super().classic(words, line, data) if known else b"ERROR\r\n"


class RefusingServer(DialectServer):
    link = Refusing


class Rules(Dialect):
    def __init__(self, meta):
        super().__init__("refusing", meta=meta, version="1.6.18" if meta == "full" else "1.4.39")
        object.__setattr__(self, "applied", collections.Counter())

    def refuse(self, commands, answer):
        object.__setattr__(self, "refused", commands)
        object.__setattr__(self, "refusal", answer)


def judge(backend, path, rules, verb, name):
    before = keys(backend)
    rules.applied.clear()
    words = [word.replace("%", name) for word in verb.split()]
    command = words[words.index("--"):] if "--" in words else []
    given = [*words[:len(words) - len(command)], "-s", f"unix:{path}", "--timeout", "1s", *command]
    what = f"{verb} where {b' '.join(rules.refused).decode()} is answered {rules.refusal!r}"
    try:
        done = subprocess.run([MCDS, *given], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
                              env=clean_environment())
    except subprocess.TimeoutExpired:
        return check(False, f"{what}: no end")
    right = HONEST | ({80} if not rules.refusal or rules.refusal == b"ERROR\r\n" else set())
    check(done.returncode in right, f"{what}: exit {done.returncode} {done.stdout[:200]} {done.stderr[:300]}")
    twice = [line for line, count in rules.applied.items() if count > 1 and b"mcds:" not in line]
    check(not twice, f"{what}: applied twice: {twice}")
    # The number of a lock's fence outlives it; what asks whether the server can do it expires.
    left = {key for key in keys(backend) - before if "mcds:probe:" not in key and not key.endswith(":fence")}
    if done.returncode == 76:
        check(not left, f"{what}: refused, and leaves {left}")
    return None


def main():
    with Servers() as servers:
        backend, number = servers.paths[0], 0
        for meta in ("full", "none"):
            rules = Rules(meta)
            path = os.path.join(servers.directory, meta)
            RefusingServer(rules, backend, path)
            for commands, answer in itertools.product(REFUSED, ANSWERS):
                if (commands == [b"mn"]) == (meta == "full") or (meta == "none" and commands[0] in (b"me", b"md", b"ma")):
                    continue  # what does not know `mn` knows none of them
                rules.refuse(commands, answer)
                for verb in VERBS:
                    number += 1
                    if FULL or number % 5 == 0:
                        judge(backend, path, rules, verb, f"n{number}")
    finish()


if __name__ == "__main__":
    main()
