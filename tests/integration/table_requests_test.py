#!/usr/bin/env python3
"""What a batch of members asks of the servers, by their own counts. Usage: table_requests_test.py BUILD_DIR

The first window, 64 lines, is looked for before it is added. If all of it was new, what follows is added unread: in one copy by
`add` alone; with several, where this batch created the table, no copy is read, and where it was there, one is left out.
Members that come and go leave their names in the index; whoever removes many drops them again.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import run
from real_servers import Servers, statistics

LINES, FIRST = 500, 64
INDEX = 150  # requests for the index and the number of copies: at most so many


def counted(servers):
    """How many reads and writes of items the servers have seen."""
    found = list(map(statistics, servers.paths))
    return [sum(int(one[name]) for one in found) for name in ("cmd_get", "cmd_set")]


def taken(servers, *words, lines=None):
    """Reads and writes of a command."""
    before = counted(servers)
    run(servers.list, *words, "-q", input=lines, check=True)
    return tuple(now - then for now, then in zip(counted(servers), before))


def added(servers, table, copies):
    """What it took to add all members."""
    return taken(servers, "--copies", str(copies), "table", "add", table, "-", lines="".join(f"member-{i}\n" for i in range(LINES)))


def expect(what, count, least):
    check(least <= count <= least + INDEX, f"{what}: {count}, at least {least}")


def first_member(servers):
    """Of a table that was just found missing, no part is appended to before it is created: that would be a trip each."""
    writes = taken(servers, "table", "add", "first", "x")[1]
    check(writes == 5, f"the first member of a table: {writes} writes; replace, shard, manifest, member and the shard's mark are 5")


def come_and_go(server):
    """200,000 members, each in the table once."""
    for round_ in range(4):
        lines = "".join(f"visitor-{round_}-{i}\n" for i in range(50_000))
        run(server.list, "table", "add", "guests", "-", "-q", input=lines, check=True)
        gets, sets = taken(server, "table", "remove", "guests", "-", lines=lines)
        # To compact a shard, each of its names is asked for once.
        check(gets <= 50_000 + 16 * 12 and sets <= 16 * 12, f"removing 50,000, then compacting: {gets} reads and {sets} writes")
    listed = json.loads(run(server.list, "table", "check", "guests").stdout)
    check(listed["count"] == 0 and listed["listed"] <= 60_000, f"after 200,000 that came and went: {listed}")


def main():
    with Servers(2, "-m", "64") as servers, Servers(1, "-m", "64") as one:
        expect("one copy, new: writes", added(servers, "one", 1)[1], FIRST + LINES)
        expect("one copy, again: writes", added(servers, "one", 1)[1], LINES)
        gets, sets = added(servers, "two", 2)
        expect("two copies, new: reads", gets, 2 * FIRST)
        expect("two copies, new: writes", sets, 2 * LINES)
        run(servers.list, "--copies", "2", "table", "add", "old", "x", "-q", check=True)
        expect("two copies, a table that was there: reads", added(servers, "old", 2)[0], 2 * FIRST + LINES - FIRST)
        expect("two copies, again: reads", added(servers, "old", 2)[0], 2 * LINES)
        first_member(servers)
        come_and_go(one)
    finish()


main()
