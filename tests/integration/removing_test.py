#!/usr/bin/env python3
"""What removes must not take what is newer: the last step of a move, and a move between servers that cannot compare.

Usage: removing_test.py BUILD_DIR
"""
import os
import signal
import sys
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import answers, run
from real_servers import Servers, ask, flush, item, items, store

ITEMS = 60


class Pools:
    """Two old servers, and a third that is added."""

    def __init__(self, stack, *flags):
        started = stack.enter_context(Servers(3, *flags))
        self.paths, self.servers, self.new = started.paths, started.processes, started.list
        self.old = self.new.rpartition(",")[0]
        self.journal = os.path.join(started.directory, "journal")

    def run(self, servers, *arguments, stdin=""):
        return answers(servers, "--as", "gomemcache", *arguments, input=stdin)

    def store(self, servers, value):
        """As an application does: each key on its server."""
        keys = "\n".join(f"app:{number}" for number in range(ITEMS))
        for line in self.run(servers, "where", "-", stdin=keys)[1]:
            store(line["server"].removeprefix("unix:"), line["key"], value)

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
            check(("give the move's --journal" in lines[0]["message"]) == (not words), f"{words}: {lines[0]}")
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
        flush(*pools.paths[:2])
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


def same_bytes_stay():
    """Clients wrote by the old list, then by the new one what had been copied: that was taken for the copy, and replaced by the older value."""
    with ExitStack() as stack:
        pools = Pools(stack)
        pools.store(pools.old, "first")
        moved = pools.move("--journal", pools.journal)[1][-1]["copied"]
        pools.store(pools.old, "between")
        pools.store(pools.new, "first")
        for how in ("--again", "--again"):
            status, lines, error = pools.move("--journal", pools.journal, how)
            check(status == 2 and (lines[-1]["updated"], lines[-1]["left"]) == (0, moved), f"{status} {lines[-1:]} {error}")
            check(pools.count("first") == ITEMS and pools.count("between") == moved, f"{pools.count('first')} of {ITEMS} are left")


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
        status, lines, error = pools.prune("--without-cas", "--journal", pools.journal)
        check(status == 2 and lines[-1]["differs"] == moved, f"prune without cas: {status} {lines[-1]} {error}")
        check("a journal cannot show" in lines[0]["message"], f"prune without cas: {lines[0]}")
        status, lines, error = pools.move("--without-cas", "--journal", pools.journal, "--again")
        check(status == 0 and lines[-1]["updated"] == moved, f"again: {status} {lines[-1]} {error}")
        status, lines, error = pools.prune("--without-cas")
        check(status == 0 and lines[-1]["removed"] == moved, f"prune at last: {status} {lines[-1]} {error}")
        check(pools.count("newer") == ITEMS, "not all are left")


def listed_without_cas():
    """A line without a cas says nothing of what was written since, unless it has a digest."""
    with Servers(1, "-C") as servers:
        path, = servers.paths
        for digest in ([], ["--digest"]):
            for later, kept in (("old", not digest), ("new", True)):
                store(path, "k", "old")
                listed = run(servers.list, "item", "list", *digest).stdout
                store(path, "k", later)
                status, lines, error = answers(servers.list, "item", "remove", "-", "--yes", input=listed)
                done = status, lines[-1]["removed"], lines[-1]["kept"]
                check(done == ((1, 0, {"changed": 1}) if kept else (0, 1, {})), f"{digest}, then {later}: {status} {lines} {error}")
                check((item(path, "k") == later.encode()) == kept, f"{digest}, then {later}: {item(path, 'k')} is there")


class Cell:
    """One key, which an old server has where clients of the old list look and the third one where those of the new list do."""

    def __init__(self, pools):
        self.pools = pools
        keys = [f"cell:{number}" for number in range(100)]
        places = [{line["key"]: line["server"].removeprefix("unix:") for line in pools.run(servers, "where", "-", stdin="\n".join(keys))[1]}
                  for servers in (pools.old, pools.new)]
        self.key = next(key for key in keys if places[1][key] == pools.paths[2])
        self.places = [places[0][self.key], pools.paths[2]]

    def set(self, letters):
        """A letter is a value, a capital the same bytes with other flags, "-" nothing."""
        for path, letter in zip(self.places, letters):
            if letter == "-":
                ask(path, f"delete {self.key}")
            else:
                store(path, self.key, letter.lower(), int(letter.isupper()))

    def read(self):
        found = items(self.pools.paths)
        letters = ""
        for path in self.places:
            flags, value = found.get((self.pools.paths.index(path), self.key.encode()), (b"0", b"-"))
            letters += value[:1].decode().upper() if flags == b"1" else value[:1].decode()
        return letters


def try_cells(pools, cell, cells, run):
    """What is left of each state of the two servers, with the exit code; with one of them frozen nothing of it changes."""
    for before, expected in cells.items():
        cell.set(before)
        status, _, error = run()
        check((cell.read(), status) == expected, f"{before}: {cell.read()} and {status}, not {expected} {error}")
    for before in cells:
        for path in cell.places:
            cell.set(before)
            server = pools.servers[pools.paths.index(path)]
            server.send_signal(signal.SIGSTOP)
            try:
                status, _, error = run("--timeout", "100ms")
            finally:
                server.send_signal(signal.SIGCONT)
            left = cell.read()
            kept = cells[before][0] if status == 0 else before
            check(left == kept, f"{before}, {path} is frozen: {left} and {status}, not {kept} {error}")


def cells_of_a_move():
    with ExitStack() as stack:
        pools = Pools(stack)
        try_cells(pools, Cell(pools), {"aa": ("aa", 0), "ab": ("ab", 2), "aA": ("aA", 2), "a-": ("aa", 0), "-b": ("-b", 0)},
                  lambda *words: pools.run(pools.old, *words, "ring", "move", "--to", pools.new))


def cells_of_a_prune_after_a_move():
    with ExitStack() as stack:
        pools = Pools(stack)
        try_cells(pools, Cell(pools), {"aa": ("-a", 0), "ab": ("ab", 2), "aA": ("aA", 2), "a-": ("a-", 2), "-b": ("-b", 0)},
                  lambda *words: pools.run(pools.new, *words, "where", "--prune", "--live", "--moved-from", pools.old, "--yes"))


def cells_of_a_load():
    """What was saved lay where the old list's clients look; it is loaded by the new list, whose third server has another letter."""
    with ExitStack() as stack:
        pools = Pools(stack)
        cell = Cell(pools)
        file = pools.journal + ".saved"
        cell.set("-a")
        check(pools.run(pools.new, "item", "save", file)[0] == 0, "not saved")
        try_cells(pools, cell, {"-a": ("-a", 0), "-b": ("-b", 0), "-A": ("-A", 0), "--": ("-a", 0)},
                  lambda *words: pools.run(pools.new, *words, "item", "load", file))
        # Saved from a server where the profile does not look: back to that one, and to none if it is not listed any more.
        cell.set("a-")
        os.unlink(file)
        check(pools.run(pools.new, "item", "save", file)[0] == 0, "not saved")
        try_cells(pools, cell, {"a-": ("a-", 0), "b-": ("b-", 0), "A-": ("A-", 0), "--": ("a-", 0), "-b": ("ab", 0)},
                  lambda *words: pools.run(pools.new, *words, "item", "load", file))
        others = ",".join("unix:" + path for path in pools.paths if path != cell.places[0])
        cell.set("--")
        status, lines, error = pools.run(others, "item", "load", file)
        check(status == 0 and lines[-1]["astray"] == 1 and cell.read() == "--", f"its server is not listed: {status} {lines} {error}")


def main():
    cells_of_a_move()
    cells_of_a_prune_after_a_move()
    cells_of_a_load()
    newer_ones_stay()
    journal_of_a_former_life()
    old_ones_go_by_the_journal()
    same_bytes_stay()
    touched_ones_stay()
    no_cas()
    listed_without_cas()
    finish()


if __name__ == "__main__":
    main()
