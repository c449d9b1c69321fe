#!/usr/bin/env python3
"""What a batch of members asks of the servers, by their own counts. Usage: table_requests_test.py BUILD_DIR

The first window, 64 lines, is looked for before it is added. If all of it was new, what follows is added unread: in one copy by
`add` alone; with several, where this batch created the table, no copy is read, and where it was there, one is left out.
Members that come and go leave their names in the index; whoever removes many drops them again.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import connected, Servers

LINES, FIRST = 500, 64
INDEX = 150  # requests for the index and the number of copies: at most so many
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")


def counted(paths):
    """How many reads and writes of items the servers have seen."""
    gets = sets = 0
    for path in paths:
        with connected(path) as file:
            file.write(b"stats\r\n")
            file.flush()
            while (line := file.readline().split())[0] != b"END":
                gets += int(line[2]) if line[1] == b"cmd_get" else 0
                sets += int(line[2]) if line[1] == b"cmd_set" else 0
    return gets, sets


def added(paths, table, copies):
    """What it took to add all members."""
    before = counted(paths)
    lines = "".join(f"member-{i}\n" for i in range(LINES))
    subprocess.run([mcds, "-s", ",".join("unix:" + path for path in paths), "--copies", str(copies), "table", "add", table, "-", "-q"],
                   input=lines, text=True, check=True, timeout=60)
    return tuple(now - then for now, then in zip(counted(paths), before))


def expect(what, count, least):
    check(least <= count <= least + INDEX, f"{what}: {count}, at least {least}")


def first_member(paths):
    """Of a table that was just found missing, no part is appended to before it is created: that would be a trip each."""
    before = counted(paths)
    subprocess.run([mcds, "-s", ",".join("unix:" + path for path in paths), "table", "add", "first", "x", "-q"], check=True, timeout=60)
    writes = counted(paths)[1] - before[1]
    check(writes == 5, f"the first member of a table: {writes} writes; replace, shard, manifest, member and the shard's mark are 5")


def come_and_go(path):
    """200,000 members, each in the table once."""
    def run(*words, lines=None):
        return subprocess.run([mcds, "-s", "unix:" + path, "table", *words], input=lines, capture_output=True, text=True, check=True, timeout=300).stdout

    for round in range(4):
        lines = "".join(f"visitor-{round}-{i}\n" for i in range(50_000))
        run("add", "guests", "-", "-q", lines=lines)
        before = counted([path])
        run("remove", "guests", "-", "-q", lines=lines)
        gets, sets = (now - then for now, then in zip(counted([path]), before))
        # To compact a shard, each of its names is asked for once.
        check(gets <= 50_000 + 16 * 12 and sets <= 16 * 12, f"removing 50,000, then compacting: {gets} reads and {sets} writes")
    listed = json.loads(run("check", "guests"))
    check(listed["count"] == 0 and listed["listed"] <= 60_000, f"after 200,000 that came and went: {listed}")


def main():
    with Servers(2, "-m", "64") as servers:
        paths = servers.paths
        expect("one copy, new: writes", added(paths, "one", 1)[1], FIRST + LINES)
        expect("one copy, again: writes", added(paths, "one", 1)[1], LINES)
        gets, sets = added(paths, "two", 2)
        expect("two copies, new: reads", gets, 2 * FIRST)
        expect("two copies, new: writes", sets, 2 * LINES)
        subprocess.run([mcds, "-s", ",".join("unix:" + path for path in paths), "--copies", "2", "table", "add", "old", "x", "-q"], check=True)
        expect("two copies, a table that was there: reads", added(paths, "old", 2)[0], 2 * FIRST + LINES - FIRST)
        expect("two copies, again: reads", added(paths, "old", 2)[0], 2 * LINES)
        first_member(paths)
        come_and_go(paths[0])
    finish()


main()
