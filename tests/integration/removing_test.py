#!/usr/bin/env python3
"""What removes must not take what is newer: the last step of a move, and a move between servers that cannot compare.

Usage: removing_test.py BUILD_DIR
"""
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import connected, items, start_memcached

mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
ITEMS = 60


def end(process):
    process.kill()
    process.wait()


class Pools:
    """Two old servers, and a third that is added."""

    def __init__(self, stack, *flags):
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        self.paths = [os.path.join(directory, name) for name in ("m1", "m2", "m3")]
        for path in self.paths:
            stack.callback(end, start_memcached(path, *flags))
        self.old = ",".join("unix:" + path for path in self.paths[:2])
        self.new = ",".join("unix:" + path for path in self.paths)
        self.journal = os.path.join(directory, "journal")

    def run(self, servers, *arguments, stdin=""):
        done = subprocess.run([mcds, "-s", servers, "--as", "gomemcache", *arguments], capture_output=True, text=True,
                              input=stdin, check=False)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stderr

    def store(self, servers, value):
        """As an application does: each key on its server."""
        keys = "\n".join(f"app:{number}" for number in range(ITEMS))
        for line in self.run(servers, "where", "-", stdin=keys)[1]:
            with connected(line["server"].removeprefix("unix:")) as file:
                file.write(f"set {line['key']} 0 0 {len(value)}\r\n{value}\r\n".encode())
                file.flush()
                check(file.readline() == b"STORED\r\n", "not stored")

    def count(self, value):
        return sum(found.startswith(value.encode()) for _, found in items(self.paths).values())

    def move(self, *words):
        return self.run(self.old, "ring", "move", "--to", self.new, *words)

    def prune(self, *words):
        return self.run(self.new, "where", "--prune", "--live", "--moved-from", self.old, "--yes", *words)


def newer_ones_stay():
    """Clients wrote by the old list after the copy, and the second copy was left out: all of it went, with exit 0."""
    with ExitStack() as stack:
        pools = Pools(stack)
        pools.store(pools.old, "first")
        status, lines, error = pools.move("--journal", pools.journal)
        moved = lines[-1]["copied"]
        check(status == 0 and moved > 5, f"moved: {status} {lines[-1:]} {error}")
        pools.store(pools.old, "newer")
        for words in ([], ["--journal", pools.journal]):
            status, lines, error = pools.prune(*words)
            check(status == 2 and lines[-1]["removed"] == 0 and lines[-1]["differs"] == moved, f"{words}: {status} {lines[-1]} {error}")
            check(pools.count("newer") == ITEMS, f"{words}: {pools.count('newer')} of {ITEMS} are left")
        # The step that was left out, and the last one again.
        status, lines, error = pools.move("--journal", pools.journal, "--again")
        check(status == 0 and lines[-1]["updated"] == moved, f"again: {status} {lines[-1]} {error}")
        status, lines, error = pools.prune()
        check(status == 0 and lines[-1]["removed"] == moved and lines[-1]["kept"]["differs"] == 0, f"prune: {status} {lines[-1]} {error}")
        check(pools.count("newer") == ITEMS, "not all are left")


def journal_of_a_former_life():
    """A restarted server counts its cas uniques from 1 again: what the journal has may be another item's."""
    with ExitStack() as stack:
        pools = Pools(stack)
        pools.store(pools.old, "first")
        pools.move("--journal", pools.journal)
        for path in pools.paths[:2]:
            with connected(path) as file:
                file.write(b"flush_all\r\n")
                file.flush()
                check(file.readline() == b"OK\r\n", "not flushed")
        pools.store(pools.new, "second")
        pools.store(pools.old, "newest")
        status, lines, error = pools.prune("--journal", pools.journal)
        check(status == 2 and lines[-1]["removed"] == 0, f"after a flush: {status} {lines[-1]} {error}")
        check(pools.count("newest") == ITEMS, "newer ones went")


def old_ones_go_by_the_journal():
    with ExitStack() as stack:
        pools = Pools(stack)
        pools.store(pools.old, "first")
        moved = pools.move("--journal", pools.journal)[1][-1]["copied"]
        pools.store(pools.new, "second")
        status, lines, error = pools.prune()
        check(status == 2 and lines[-1]["differs"] == moved, f"without a journal: {status} {lines[-1]} {error}")
        status, lines, error = pools.prune("--journal", pools.journal)
        check(status == 0 and lines[-1]["removed"] == moved, f"with the journal: {status} {lines[-1]} {error}")
        check(pools.count("second") == ITEMS and pools.count("first") == 0, "the new ones are not all that is left")


def touched_ones_stay():
    """The same bytes, but the old one lasts longer: it was renewed by a client of the old list."""
    with ExitStack() as stack:
        pools = Pools(stack)
        pools.store(pools.old, "first")
        keys = "\n".join(f"app:{number}" for number in range(ITEMS))
        pools.run(pools.old, "item", "touch", "-", "--ttl", "100s", stdin=keys)
        moved = pools.move()[1][-1]["copied"]
        pools.run(pools.old, "item", "touch", "-", "--ttl", "2h", stdin=keys)
        status, lines, error = pools.prune()
        check(status == 2 and lines[-1]["differs"] == moved, f"touched: {status} {lines[-1]} {error}")


def no_cas():
    """Without cas a second copy left everything as changed on both servers, and the last step removed it."""
    with ExitStack() as stack:
        pools = Pools(stack, "-C")
        pools.store(pools.old, "first")
        for words in ([], ["--dry-run"], ["--journal", pools.journal]):
            status, lines, error = pools.move(*words)
            check(status == 76 and not lines and "without cas" in error and '"server":"unix:' in error, f"{words}: {status} {lines} {error}")
        check(len(items(pools.paths)) == ITEMS, "something was copied")
        moved = pools.move("--without-cas", "--journal", pools.journal)[1][-1]["copied"]
        pools.store(pools.old, "newer")
        status, lines, error = pools.prune()
        check(status == 2 and lines[-1]["removed"] == 0, f"prune: {status} {lines[-1]} {error}")
        status, lines, error = pools.prune("--without-cas")
        check(status == 2 and lines[-1]["differs"] == moved, f"prune without cas: {status} {lines[-1]} {error}")
        status, lines, error = pools.move("--without-cas", "--journal", pools.journal, "--again")
        check(status == 0 and lines[-1]["updated"] == moved, f"again: {status} {lines[-1]} {error}")
        status, lines, error = pools.prune("--without-cas")
        check(status == 0 and lines[-1]["removed"] == moved, f"prune at last: {status} {lines[-1]} {error}")
        check(pools.count("newer") == ITEMS, "not all are left")


def main():
    newer_ones_stay()
    journal_of_a_former_life()
    old_ones_go_by_the_journal()
    touched_ones_stay()
    no_cas()
    finish()


if __name__ == "__main__":
    main()
