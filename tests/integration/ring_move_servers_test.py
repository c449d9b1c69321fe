#!/usr/bin/env python3
"""What may happen to a move: it is stopped for seconds in the middle of a batch, or a new server is, or that one has too little memory, or is a
proxy. Items end when they would have ended, and what a server threw out is told.

Usage: ring_move_servers_test.py BUILD_DIR
"""
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS, answers, environment
from real_servers import Servers, ask, connected, end, flush, start_twemproxy, statistics

ITEMS = 4000
STOPPED_S = 4
TTL_TOLERANCE_S = 2


def exchange(file, lines):
    """All answers to `lines`."""
    file.write(lines + b"version\r\n")
    file.flush()
    return list(itertools.takewhile(lambda line: not line.startswith(b"VERSION"), iter(file.readline, b"")))


def store(path, size):
    with connected(path) as file:
        lines = [f"set k:{number} {number % 9} {0 if number % 2 else 50 + number} {size} noreply\r\n{number:0{size}}\r\n" for number in range(ITEMS)]
        exchange(file, "".join(lines).encode())


def ends(path):
    """When each item ends, between two times; None: never. With its flags; a line: it is not there."""
    with connected(path) as file:
        before = time.time()
        answer = exchange(file, "".join(f"mg k:{number} t f\r\n" for number in range(ITEMS)).encode())
        after = time.time()
    for line in answer:
        words = line.split()
        if words[0] != b"HD":
            yield line
        else:
            ttl = int(words[1][1:])
            yield None if ttl == -1 else (before + ttl, after + ttl), int(words[2][1:])


def count(path, name="curr_items"):
    return int(statistics(path)[name])


def is_kept(old, new):
    if isinstance(new, bytes) or new[1] != old[1] or old[0] is None or new[0] is None:
        return new == old
    return old[0][0] - TTL_TOLERANCE_S <= new[0][1] and new[0][0] <= old[0][1] + TTL_TOLERANCE_S


def stopped(which):
    with Servers(2) as servers:
        old, new = servers.paths
        store(old, 20)
        before = list(ends(old))
        check(len(before) == ITEMS and before[3] == (None, 3), f"{before[:4]}")
        mover = subprocess.Popen([MCDS, "-s", "unix:" + old, "--timeout", "30s", "ring", "move", "--to", "unix:" + new, "--rate", str(ITEMS)],
                                 stdout=subprocess.PIPE, text=True, env=environment())
        while mover.poll() is None and count(new) < ITEMS // 10:
            time.sleep(0.001)
        process = mover if which == "mover" else servers.processes[which == "new server"]
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
        out = mover.communicate()[0]
        check(mover.returncode == 0 and json.loads(out.splitlines()[-1])["copied"] == ITEMS, f"{which} stopped: {mover.returncode} {out}")
        pairs = enumerate(zip(before, ends(new), strict=True))
        wrong = [f"k:{number}: {there} for {here}" for number, (here, there) in pairs if not is_kept(here, there)]
        check(not wrong, f"{which} stopped: {len(wrong)} of {ITEMS} items: {wrong[:3]}")


def short_of_memory():
    """What was evicted is copied by the next run; the journal said of it that it was there."""
    with Servers() as servers:
        old, new, journal = servers.paths[0], servers.start("-m", "2"), os.path.join(servers.directory, "journal")
        store(old, 2000)
        move = (servers.list.split(",")[0], "ring", "move", "--to", "unix:" + new, "--journal", journal)
        for options in ([], []):
            status, lines, error = answers(*move, *options)
            check(status == 2 and lines[-1]["copied"] >= ITEMS - count(new), f"evicted, then copied again: {status} {lines[-1:]} {error}")
        status, lines, error = answers(*move, "--again")
        lost = [line["lost"] for line in lines if "lost" in line]
        check(status == 2 and lost == [ITEMS - count(new)] and lines[-1]["copied"] == 0, f"evicted, --again: {status} {lost} {lines[-1:]} {error}")
        with connected(new) as file:
            exchange(file, b"cache_memlimit 64\r\n")
        status, lines, error = answers(*move)
        check(status == 0 and lines[-1]["copied"] == lost[0] and count(new) == ITEMS, f"with more memory: {status} {lines[-1:]} {error}")
        told_of_evictions(*servers.paths[:1], servers.start("-m", "2"))


def told_of_evictions(old, new):
    status, lines, error = answers("unix:" + old, "ring", "move", "--to", "unix:" + new)
    evictions = count(new, "evictions")
    check(evictions > 0, f"{new} evicts nothing")
    check(status == 2, f"a new server evicted items: {status} {error}")
    check(lines[-1]["evicted"] == evictions, f"{evictions} were evicted: {lines[-1]}")
    told = [line for line in lines if "restarted" in line]
    check(len(told) == 1 and told[0]["to"] == "unix:" + new and told[0]["evicted"] == evictions and not told[0]["restarted"] and not told[0]["flushed"], f"told: {told}")


def to_proxy():
    """It closes the connection on which it is asked for statistics, and has several servers behind it."""
    with Servers(["old", "behind1", "behind2"]) as servers:
        paths, proxy = servers.paths, os.path.join(servers.directory, "proxy")
        process = start_twemproxy(proxy, dict(zip(servers.names[1:], paths[1:])), "hash: fnv1a_64", "timeout: 5000")
        store(paths[0], 20)
        for counted in ("copied", "already"):
            status, lines, error = answers("unix:" + paths[0], "ring", "move", "--to", "unix:" + proxy)
            summary = lines[-1]
            check(status == 0 and summary[counted] == ITEMS and summary["evicted"] is None, f"to a proxy, {counted}: {summary} {error}")
        check(sum(map(count, paths[1:])) == ITEMS, "not all are behind the proxy")
        end(process)


def restarted():
    """Between two runs. The journal said of what was lost that it was there; and of what was loaded anew into the old server, in the same order,
    that it was unchanged, for its cas uniques were the same again."""
    with Servers(2) as servers:
        (old, new), journal = servers.paths, os.path.join(servers.directory, "journal")

        def store_all(value):
            with connected(old) as file:
                exchange(file, b"".join(b"set key%d 0 0 %d\r\n%s\r\n" % (i, len(value), value) for i in range(100)))

        def move(*options):
            status, lines, _ = answers("unix:" + old, "ring", "move", "--to", "unix:" + new, "--journal", journal, *options)
            return status, lines[-1], [line["lost"] for line in lines if "lost" in line]

        store_all(b"first")
        status, summary, _ = move()
        check(status == 0 and summary["copied"] == 100, f"the first run: {status} {summary}")
        servers.restart(1)
        status, summary, lost = move("--again")
        check(status == 2 and lost == [100] and count(new) == 0, f"a new server was restarted: {status} {summary} {lost}")
        status, summary, lost = move()
        check(status == 0 and not lost and count(new) == 100, f"copied again after a restart: {status} {summary} {lost}")
        for then in ("stats reset", "version"):  # the first sets the count of flushes to 0
            flush(new)
            ask(new, then)
            status, summary, lost = move("--again")
            check(status == 2 and lost == [100], f"a new server was flushed, then {then}: {status} {summary} {lost}")
            status, summary, lost = move()
            check(status == 0 and summary["copied"] == 100, f"copied again after it was flushed, then {then}: {status} {summary} {lost}")
        status, summary, lost = move("--again")
        check(status == 0 and summary["already"] == 100 and not lost, f"nothing has happened since: {status} {summary} {lost}")
        servers.restart(0)
        store_all(b"later")
        status, summary, lost = move("--again")
        check(status == 0 and summary["updated"] == 100 and not lost, f"the old server was restarted: {status} {summary} {lost}")


def united_tables():
    """Parts of an index that both clients create while the move is under way become one, and nothing counts as lost."""
    for copies in ("1", "2"):
        with Servers(3) as servers, Servers(2) as added:
            old, new = servers.list, f"{servers.list},{added.list}"
            journal = os.path.join(servers.directory, "journal")
            names = [f"{which}-{number}" for which in ("old", "new") for number in range(60)]
            answers(old, "--copies", copies, "table", "add", "t", "first", check=True)
            answers(old, "ring", "move", "--to", new, "--journal", journal, "--even-astray", check=True)
            for which, servers_then in (("old", old), ("new", new)):
                answers(servers_then, "--copies", copies, "table", "add", "t", *(name for name in names if name.startswith(which)), check=True)
            status, lines, error = answers(old, "ring", "move", "--to", new, "--journal", journal, "--even-astray", "--again")
            check(status == 0 and lines[-1]["united"] > 0, f"{copies} copies, again: {status} {lines[-1:]} {error}")
            status, lines, error = answers(new, "--copies", copies, "table", "fetch", "t")
            found = sorted(line["member"] for line in lines)
            check(status == 0 and found == sorted([*names, "first"]), f"{copies} copies: {status} {len(lines)} {error}")


def moved_back():
    """A table goes from one server to another, which has one of that name, and back: what is lost afterwards is told."""
    with Servers(2) as servers:
        one, other = servers.list.split(",")
        for server, which in ((one, "a"), (other, "b")):
            answers(server, "table", "add", "t", *(f"{which}{number}" for number in range(40)), check=True)
        for source, target in ((one, other), (other, one)):
            answers(source, "ring", "move", "--to", target, "--even-astray")
            status, lines, error = answers(target, "table", "fetch", "t")
            check(status == 0 and len(lines) == 80, f"moved to {target}: {status} {len(lines)} {error}")
        answers(one, "item", "remove", "table:t:i:9", check=True)
        status, lines, error = answers(one, "table", "fetch", "t")
        check(status == 2 and "table:t:i:9" in lines[-1].get("lost", []), f"a part is lost after both moves: {status} {lines[-1]} {error}")


def main():
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(stopped, which) for which in ("mover", "new server", "old server")]
        futures += [pool.submit(target) for target in (short_of_memory, to_proxy, restarted, united_tables, moved_back)]
        # What one raises is raised here.
        for future in futures:
            future.result()


if __name__ == "__main__":
    main()
    finish()
