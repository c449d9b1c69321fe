#!/usr/bin/env python3
"""Three copies, and clients that reach some of their servers. A change by a client that reached one of three was told as unknown, and
was there; two others changed it again, and when all three answered the first was back. A reader answered what it had seen on one copy
and could not write back, and the next one said what was before.

Usage: most_copies_test.py BUILD_DIR
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from partitioned import World
from real_servers import items

mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
SERVERS = range(3)

MADE = [["hash", "set", "h", "f", "before"], ["table", "add", "t", "m"]]
# The change, the change that undoes it, and what is there then; each by a client that reaches one server, or lacks one.
CHANGES = [(["hash", "set", "h", "f", "refused"], ["hash", "set", "h", "f", "done"], ["hash", "get", "h", "f"], ["done"]),
           (["hash", "remove", "h", "f"], ["hash", "set", "h", "f", "done"], ["hash", "get", "h", "f"], ["done"]),
           (["table", "remove", "t", "m"], ["table", "add", "t", "m"], ["table", "fetch", "t"], ["m"]),
           (["table", "add", "t", "n"], ["table", "remove", "t", "n"], ["table", "fetch", "t"], ["m"])]


def done(world, group, words):
    op = world.run(group, words)
    check(op.exit == 0 or (op.exit == 1 and "remove" in words), f"{' '.join(words)}: {op.exit} {op.err}")
    return op


def values(op):
    found = []
    for answer in op.answers():
        if answer.get("found", True):
            found.append(answer.get("value", answer.get("member")))
    return found


def refused_below_most(world):
    """Nothing is written by who reaches one of three."""
    for change, undoing, look, left in CHANGES:
        for only in SERVERS:
            world.flush()
            for words in MADE:
                done(world, 0, words)
            before = items(world.paths)
            world.cut(1, [server for server in SERVERS if server != only])
            op = world.run(1, change)
            what = f"{' '.join(change)} with server {only} only: {op.exit} {op.err}"
            check(op.exit == 69, what)
            check(items(world.paths) == before, f"{what}: something was written")
            world.reach_all(1)
            world.cut(2, [only])
            done(world, 2, undoing)
            world.reach_all(2)
            for away in (None, *SERVERS):
                world.cut(3, [] if away is None else [away])
                op = done(world, 3, [*look, "-o", "value"])
                check(op.out.split() == left, f"{what}; then {' '.join(undoing)} without it, read without {away}: {op.out.split()}")
                world.reach_all(3)


def write_back_unseen(world):
    """A value is on one copy. Who reads it there, and cannot write it to another, does not say it."""
    for newer in SERVERS:
        for older in SERVERS:
            if older == newer:
                continue
            world.flush()
            done(world, 0, ["hash", "set", "h", "f", "old"])
            for server in SERVERS:
                if server != newer:
                    world.proxy.plan(world.links[1][server], "cut", 2)
            op = world.run(1, ["hash", "set", "h", "f", "new"])
            check(op.exit == 80, f"a write that reached one: {op.exit} {op.err}")
            world.reach_all(1)
            lacking = 3 - newer - older
            world.cut(2, [lacking])
            world.proxy.plan(world.links[2][older], "cut", 2)
            seen = world.run(2, ["hash", "get", "h", "f"])
            world.reach_all(2)
            world.cut(3, [newer])
            after = done(world, 3, ["hash", "get", "h", "f"])
            world.reach_all(3)
            what = f"new on {newer}; read with {older}, which it is not written to: {seen.exit} {seen.out}; then without {newer}: {after.out}"
            check(seen.exit == 69, what)
            check(values(after) == ["old"], what)


def one_remover(world):
    """Of removers that reach different servers one at most is told that it removed it."""
    for round_ in range(12):
        world.flush()
        done(world, 0, ["table", "add", "t", "job"])
        removers = [world.begin(group, ["table", "remove", "t", "job"]) for group in range(1, 5)]
        for group in range(1, 5):
            if round_ % 2:
                world.cut(group, [group % 3])
        told = [world.end(op) for op in removers]
        for group in range(1, 5):
            world.reach_all(group)
        removed = [op for op in told if op.exit == 0]
        unknown = [op for op in told if op.exit == 80]
        what = [(op.exit, op.out, op.err) for op in told]
        check(len(removed) <= 1, f"removed {len(removed)} times: {what}")
        check(removed or unknown, f"nobody removed it: {what}")
        check(done(world, 0, ["table", "count", "t", "-o", "value"]).out.strip() == "0", f"it is there: {what}")


def two_copies_say_so(world):
    """An answer that rests on one copy of two."""
    world.flush()
    servers = [copy["server"].rsplit(".", 1)[1] for copy in world.run(0, ["hash", "set", "h", "f", "v"], copies=2).answer()["copies"]]
    check(len(servers) == 2, f"copies on {servers}")
    for away in (None, *servers):
        world.cut(1, [] if away is None else [int(away)])
        for words in (["hash", "get", "h", "f"], ["hash", "set", "h", "f", "v"]):
            op = world.run(1, words, copies=2)
            check(op.exit == 0 and op.answer().get("degraded", False) == (away is not None), f"{words} without {away}: {op.exit} {op.out}")
        world.reach_all(1)


def every_answer_says_so(world):
    """Whatever is read or changed while one server of a pool of two does not answer."""
    made = (["table", "add", "t", "a"], ["hash", "set", "h", "f", "v"], ["counter", "incr", "c"])
    asked = (["table", "fetch", "t"], ["table", "count", "t"], ["table", "check", "t"], ["table", "has", "t", "a"], ["hash", "fetch", "h"],
             ["counter", "get", "c"])
    changed = (["table", "add", "t", "new"], ["hash", "set", "h", "new", "v"], ["counter", "incr", "c"], ["table", "remove", "t", "a"])
    for away in (None, 0, 1):
        world.flush()
        for words in made:
            check(world.run(0, words).exit == 0, f"{words}")
        world.cut(1, [] if away is None else [away])
        for words in (*asked, *changed):
            op = world.run(1, words)
            lines = op.answers()
            says = [line.get("degraded", False) for line in lines]
            check(op.exit == 0 and says and set(says) == {away is not None}, f"{words} without {away}: {op.exit} {op.out} {op.err}")
            lacking = [copy for line in lines for copy in line.get("copies", ()) if "error" in copy]
            check(len(lacking) <= 1, f"{words} without {away}: the copy that answers is called lacking: {op.out}")
        world.reach_all(1)


with World(mcds) as all_servers:
    two_copies_say_so(all_servers)
    refused_below_most(all_servers)
    write_back_unseen(all_servers)
    one_remover(all_servers)
with World(mcds, copies=2, servers=2) as two_servers:
    every_answer_says_so(two_servers)
finish()
