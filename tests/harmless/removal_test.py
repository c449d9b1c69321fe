#!/usr/bin/env python3
"""Removing what was listed while the server moves items in its memory, which gives them another cas, and clients write:
everything that was listed goes, and nothing that was written since.

Usage: removal_test.py BUILD_DIR [KEYS]. MCDS_TEST_SERVERS=DIR adds DIR/*/memcached to Debian's memcached.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
from real_servers import connected  # noqa: E402
from traffic import Memcached, programs  # noqa: E402

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
KEYS = int(sys.argv[2]) if len(sys.argv) > 2 else 60_000
OTHER_CLASS = 20


class Meanwhile:
    """A thread with a connection of its own, until the block ends."""

    def __init__(self, server, work):
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(server, work))

    def _run(self, server, work):
        with connected(server.path) as file:
            work(file, self._ends)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()


def ask(file, line):
    file.write(line + b"\r\n")
    file.flush()
    return file.readline().rstrip()


def move_pages(file, ends):
    """Of the class that has the items to another one, and back before it lacks them: some versions skip what comes too soon."""
    lines = asked_for(file, b"stats items")
    numbers = [(int(found[2]), int(found[1])) for line in lines if (found := re.match(rb"STAT items:(\d+):number (\d+)", line))]
    full = max(numbers)[1]
    pages = b"STAT %d:total_pages " % OTHER_CLASS
    while not ends.is_set():
        has = [int(line.split()[2]) for line in asked_for(file, b"stats slabs") if line.startswith(pages)]
        classes = (OTHER_CLASS, full) if has and has[0] > 2 else (full, OTHER_CLASS)
        while ask(file, b"slabs reassign %d %d" % classes).startswith(b"BUSY"):
            time.sleep(0.001)
        while b"STAT slab_reassign_running 1\r\n" in asked_for(file, b"stats"):
            time.sleep(0.001)


def asked_for(file, words):
    file.write(words + b"\r\n")
    file.flush()
    return list(iter(file.readline, b"END\r\n"))


def store_all(server):
    """With as much room beside them as a page that is moved needs: a server removes what it finds no room for."""
    server.store(0, KEYS + KEYS // 4 + 20_000, size=200)
    with connected(server.path) as file:
        for first in range(KEYS, KEYS + KEYS // 4 + 20_000, 5000):
            file.write(b"".join(b"delete key:%012d noreply\r\n" % key for key in range(first, first + 5000)) + b"mn\r\n")
            file.flush()
            file.readline()


def write_others(written):
    def work(file, ends):
        while not ends.is_set():
            key = b"other:%d" % len(written)
            if ask(file, b"set %s 0 0 5\r\nother" % key) == b"STORED":
                written.append(key)

    return work


def write_listed(numbers, written):
    def work(file, ends):
        for number in numbers:
            if ends.is_set():
                return
            key = b"key:%012d" % number
            if ask(file, b"set %s 0 0 3\r\nnew" % key) == b"STORED":
                written.append(key)

    return work


def values(server, keys):
    with connected(server.path) as file:
        found = {}
        for key in keys:
            if (line := ask(file, b"get " + key)) != b"END":
                found[key] = file.read(int(line.split()[3]) + 2)[:-2]
                file.readline()
        return found


def left(server):
    found = set()
    with connected(server.path) as file:
        for first in range(0, KEYS, 1000):
            file.write(b"".join(b"mg key:%012d k q\r\n" % key for key in range(first, min(first + 1000, KEYS))) + b"mn\r\n")
            file.flush()
            found |= {line.split(b" k")[1].rstrip() for line in iter(file.readline, b"MN\r\n")}
    return found


def mcds(server, words, **streams):
    # Patient: a server that moves so much, on a machine that is busy with other things, answers late.
    return subprocess.Popen([MCDS, *words, "--timeout", "20s"], env={**os.environ, "MCDS_SERVERS": server.address}, stderr=subprocess.PIPE, **streams)


def summary_of(out):
    return json.loads(out.splitlines()[-1]) if out else {}


DROPPED = ("evictions", "slab_reassign_evictions_nomem", "slab_reassign_busy_deletes")


def piped(name, server):
    """mcds item list | mcds item remove."""
    others = []
    began = time.monotonic()
    with Meanwhile(server, move_pages), Meanwhile(server, write_others(others)):
        lister = mcds(server, ["item", "list", "--prefix", "key:", "--digest"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        remover = mcds(server, ["item", "remove", "-", "-y"], stdin=lister.stdout, stdout=subprocess.PIPE)
        lister.stdout.close()
        out, err = remover.communicate(timeout=600)
        listed = lister.wait()
    seconds = time.monotonic() - began
    summary, stats = summary_of(out), server.statistics()
    check(listed == 0 and remover.returncode == 0, f"{name}: list {listed}, remove {remover.returncode}: {summary}, {err[-500:]}")
    check(summary.get("removed") == KEYS and not left(server), f"{name}: not all went: {summary}, {len(left(server))} are left")
    check(int(stats["slabs_moved"]) > 0 and int(stats["slab_reassign_rescues"]) > 0, f"{name}: the server moved no items")
    evicted = [int(stats.get(word, 0)) for word in ("evictions", "slab_reassign_evictions_nomem")]
    check(not any(evicted), f"{name}: the server had no room for what it moved: {evicted}")
    kept = values(server, others)
    check(others and set(kept) == set(others), f"{name}: {len(others) - len(kept)} keys of others are gone")
    print(f"{name}: {summary.get('removed')} of {KEYS} removed in {seconds:.1f} s; pages moved: {stats['slabs_moved']}, items in them: "
          f"{stats['slab_reassign_rescues']}; written meanwhile: {len(others)}, all there", flush=True)


def written_since(name, server, directory):
    """What is written after it was listed stays."""
    lines = os.path.join(directory, "list")
    for _ in range(6):  # while the server's own crawl goes on, mcds says "try again"
        with open(lines, "wb") as file:
            code = mcds(server, ["item", "list", "--prefix", "key:", "--digest"], stdin=subprocess.DEVNULL, stdout=file).wait()
        if code != 75:
            break
    check(code == 0, f"{name}: list to a file: {code}")
    written = []
    numbers = random.Random(KEYS).sample(range(KEYS), KEYS // 50)
    before = sum(int(server.statistics().get(word, 0)) for word in DROPPED)
    with Meanwhile(server, move_pages), Meanwhile(server, write_listed(numbers, written)), open(lines, "rb") as file:
        remover = mcds(server, ["item", "remove", "-", "-y"], stdin=file, stdout=subprocess.PIPE)
        out, err = remover.communicate(timeout=600)
    summary = summary_of(out)
    there = values(server, written)
    stale = [key for key in written if there.get(key) != b"new"]
    # A server that moves a page removes items of it that somebody reads each time it looks: then they are missing, not removed by us.
    dropped = min(sum(int(server.statistics().get(word, 0)) for word in DROPPED) - before, summary.get("kept", {}).get("missing", 0))
    check(written and len(stale) <= dropped,
          f"{name}: {len(stale)} of {len(written)} newer values are gone, such as {stale[:3]}, {dropped} by the server: {summary}, {err[-500:]}")
    check(left(server) == set(written) - set(stale), f"{name}: {len(left(server) - set(written))} are left that nobody wrote: {summary}")
    changed = summary.get("kept", {}).get("changed", 0)
    check(remover.returncode == bool(changed), f"{name}: remove: exit {remover.returncode}, {summary}")
    print(f"{name}: written since the list: {len(written)}, {len(stale)} dropped by the server ({dropped}); {changed} of them met as changed", flush=True)


def restarted(name, program, directory, *options):
    """A restarted server counts its cas numbers from 1 again: the same number is no proof that the item is the one that was listed."""
    keys = [b"key:%012d" % number for number in range(5)]
    with Memcached(program, directory) as server:
        server.store(0, len(keys))
        lines = mcds(server, ["item", "list", "--prefix", "key:", *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).communicate()[0]
    with Memcached(program, directory) as server:
        with connected(server.path) as file:
            for key in keys:
                check(ask(file, b"set %s 0 0 3\r\nnew" % key) == b"STORED", f"{name}: {key} is not stored")
        for how in ("--dry-run", "-y"):
            remover = mcds(server, ["item", "remove", "-", how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            out, err = remover.communicate(lines)
            summary = summary_of(out)
            check(remover.returncode == 1 and summary["kept"] == {"changed": len(keys)}, f"{name} {options} {how}: {remover.returncode} {summary}")
            check((b"before their server was restarted" in err) == (not options), f"{name} {options} {how}: {err}")
        check(values(server, keys) == {key: b"new" for key in keys}, f"{name} {options}: newer values are gone")


def main():
    for name, program in programs():
        with tempfile.TemporaryDirectory() as directory, Memcached(program, directory, "-o", "slab_reassign,no_slab_automove") as server:
            store_all(server)
            piped(name, server)
            store_all(server)
            written_since(name, server, directory)
        with tempfile.TemporaryDirectory() as directory:
            restarted(name, program, directory)
            restarted(name, program, directory, "--digest")
    finish()


if __name__ == "__main__":
    main()
