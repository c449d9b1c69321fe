#!/usr/bin/env python3
"""A wrong profile moves or loads no key: it is refused with the better one named, on pools of two, three and five servers.

Usage: gate_test.py BUILD_DIR
"""
import os
import random
import sys
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import answers
from real_servers import Servers, connected, flush, items

WRITER, OTHER = "pymemcache", "gomemcache"


class Pool:
    """`servers` of the pool, and one more that is added."""

    def __init__(self, stack, servers):
        started = stack.enter_context(Servers(servers + 1))
        self.directory, self.paths, self.new = started.directory, started.paths, started.list
        self.old = self.new.rpartition(",")[0]
        self.file = os.path.join(self.directory, "saved")

    def run(self, servers, *words, stdin=None):
        return answers(servers, *words, input=stdin)

    def put(self, places, value="x"):
        """Keys by number of the server."""
        for number, path in enumerate(self.paths):
            keys = [key for key, at in places.items() if at == number]
            with connected(path) as file:
                file.write("".join(f"set {key} 0 0 {len(value)}\r\n{value}\r\n" for key in keys).encode())
                file.flush()
                check(all(file.readline() == b"STORED\r\n" for _ in keys), "not stored")

    def places(self, keys, profile, servers=None):
        _, lines, _ = self.run(servers or self.old, "--as", profile, "where", "-", stdin="\n".join(keys))
        return {line["key"]: line["index"] for line in lines}

    def write(self, keys, profile, value="x"):
        places = self.places(keys, profile)
        self.put(places, value)
        return places

    def on_new(self):
        return sum(number == len(self.paths) - 1 for number, _ in items(self.paths))

    def empty(self):
        flush(*self.paths)


def names(count, start=0):
    return [f"user:{number}" for number in range(start, start + count)]


def a_wrong_profile():
    for servers in (2, 3, 5):
        with ExitStack() as stack:
            pool = Pool(stack, servers)
            pool.write(names(600), WRITER)
            for words in ([], ["--as", "dalli"]):
                status, lines, error = pool.run(pool.old, *words, "ring", "move", "--to", pool.new)
                check(status == 65 and not lines and "give --as pymemcache" in error and pool.on_new() == 0, f"{servers} {words}: {status} {lines} {error}")
            status, lines, error = pool.run(pool.old, "--as", WRITER, "ring", "move", "--to", pool.new)
            check(status == 0 and lines[-1]["copied"] > 0 and lines[-1]["astray"] == 0, f"{servers}: {status} {lines[-1:]} {error}")
            # The right one again, when copies are there already.
            status, lines, error = pool.run(pool.old, "--as", WRITER, "ring", "move", "--to", pool.new)
            check(status == 0, f"{servers}, again: {status} {error}")


def an_unknown_client():
    for servers in (2, 3, 5):
        with ExitStack() as stack:
            pool = Pool(stack, servers)
            dice = random.Random(4711)
            pool.put({key: dice.randrange(servers) for key in names(600)})
            status, lines, error = pool.run(pool.old, "ring", "move", "--to", pool.new)
            check(status == 65 and "no more than chance" in error and pool.on_new() == 0, f"{servers}: {status} {lines} {error}")
            status, lines, error = pool.run(pool.old, "ring", "move", "--to", pool.new, "--even-astray")
            check(status == 0 and pool.on_new() > 0, f"{servers} --even-astray: {status} {lines[-1:]} {error}")


def two_writers():
    """Either moves its own keys; those of the other that lie elsewhere are counted and never copied."""
    for servers in (2, 3, 5):
        for profile in (WRITER, OTHER):
            with ExitStack() as stack:
                pool = Pool(stack, servers)
                places = {**pool.write(names(360), WRITER), **pool.write(names(240, 1000), OTHER)}
                here, there = pool.places(places, profile), pool.places(places, profile, pool.new)
                status, lines, error = pool.run(pool.old, "--as", profile, "ring", "move", "--to", pool.new)
                astray = sum(here[key] != places[key] for key in places)
                check(status == 0 and lines[-1]["astray"] >= astray - sum(there[key] == places[key] for key in places if here[key] != places[key])
                      and lines[-1]["astray"] <= astray, f"{servers} {profile}: {status} {lines[-1:]} {error}")
                copied = {key.decode() for number, key in items(pool.paths) if number == servers}
                check(copied == {key for key in places if here[key] == places[key] and there[key] == servers}, f"{servers} {profile}: {len(copied)}")


def few_keys():
    with ExitStack() as stack:
        pool = Pool(stack, 2)
        pool.put({"a": 0, "b": 1, "c": 0})
        status, _, error = pool.run(pool.old, "ring", "move", "--to", pool.new)
        check(status == 0, f"three keys: {status} {error}")


def a_file():
    """It is judged by the list and the sample of its save, also on another pool."""
    for servers in (2, 3, 5):
        with ExitStack() as stack:
            pool = Pool(stack, servers)
            pool.write(names(600), WRITER)
            status, _, error = pool.run(pool.old, "item", "save", pool.file)
            check(status == 0 and error == "", f"save: {status} {error}")
            pool.empty()
            for list_of in (pool.old, pool.new):
                status, lines, error = pool.run(list_of, "item", "load", pool.file)
                check(status == 65 and not lines and "give --as pymemcache" in error and not items(pool.paths), f"{status} {lines} {error}")
                status, lines, error = pool.run(list_of, "--as", WRITER, "item", "load", pool.file)
                check(status == 0 and lines[-1]["loaded"] == 600 and lines[-1]["astray"] == 0, f"{status} {lines[-1:]} {error}")
                places = pool.places(names(600), WRITER, list_of)
                check({(at, key.encode()) for key, at in places.items()} == set(items(pool.paths)), "keys where their client does not look")
                pool.empty()
            status, lines, error = pool.run(pool.new, "item", "load", pool.file, "--even-astray")
            check(status == 0 and lines[-1]["loaded"] > 0, f"--even-astray: {status} {lines[-1:]} {error}")


def keys_of_one_server():
    """The right profile looks for nearly all of them there: that was called chance. A wrong one is refused all the same."""
    with ExitStack() as stack:
        pool = Pool(stack, 3)
        keys = [key for key, at in pool.places(names(600), WRITER).items() if at == 0]
        found = pool.places(keys, "ketama")  # by chance a third of them, whatever the servers' names are
        astray = [key for key in keys if found[key] != 0]
        places = {key: 0 for key in astray + [key for key in keys if found[key] == 0][:len(astray) // 2]}
        strays = {key: 0 for key, at in pool.places(names(60, 1000), WRITER).items() if at != 0}
        pool.put({**places, **strays})
        pool.run(pool.old, "item", "save", pool.file, "--on", "unix:" + pool.paths[0])
        status, _, error = pool.run(pool.old, "ring", "move", "--to", pool.new)
        check(status == 65 and pool.on_new() == 0, f"a wrong profile: {status} {error}")
        status, lines, error = pool.run(pool.old, "--as", WRITER, "ring", "move", "--to", pool.new)
        check(status == 0 and lines[-1]["copied"] > 0, f"move: {status} {lines[-1:]} {error}")
        pool.empty()
        status, _, error = pool.run(pool.old, "item", "load", pool.file)
        check(status == 65 and not items(pool.paths), f"a wrong profile: {status} {error}")
        status, lines, error = pool.run(pool.old, "--as", WRITER, "item", "load", pool.file)
        check(status == 0 and lines[-1]["loaded"] == len(places) + len(strays), f"load: {status} {lines[-1:]} {error}")


def astray_items_of_a_file():
    """They go back to the server they came from; if that is gone, or clients would now read them there, they are left."""
    with ExitStack() as stack:
        pool = Pool(stack, 3)
        places = pool.write(names(600), WRITER)
        strays = {key: (at + 1) % 3 for key, at in pool.places(names(50, 1000), WRITER).items()}
        pool.put(strays, "s")
        pool.run(pool.old, "--as", WRITER, "item", "save", pool.file)
        before = items(pool.paths)
        pool.empty()
        status, lines, error = pool.run(pool.old, "--as", WRITER, "item", "load", pool.file)
        check(status == 0 and lines[-1]["astray"] == 0 and items(pool.paths) == before, f"back: {status} {lines[-1:]} {error}")
        pool.empty()
        fewer = ",".join(pool.old.split(",")[:2])
        status, lines, error = pool.run(fewer, "--as", WRITER, "item", "load", pool.file)
        read = pool.places(list(strays), WRITER, fewer)
        gone = sum(at in (2, read[key]) for key, at in strays.items())
        check(status == 0 and gone > 0 and lines[-1]["astray"] == gone and lines[-1]["loaded"] == 650 - gone, f"fewer: {gone} {status} {lines[-1:]} {error}")
        check(len(places) == 600 and all(before[at, key.encode()][1] == b"s\r\n" for key, at in strays.items()), "the strays were not there")


def a_move_that_is_done():
    """The old list explains no key any more; to name another client, which explains some by chance, would be wrong."""
    with ExitStack() as stack:
        pool = Pool(stack, 3)
        pool.write(names(600), OTHER)
        status, _, error = pool.run(pool.old, "--as", OTHER, "ring", "move", "--to", pool.new)
        check(status == 0, f"move: {status} {error}")
        status, _, error = pool.run(pool.new, "--as", OTHER, "where", "--prune", "--live", "--moved-from", pool.old, "--yes")
        check(status == 0, f"prune: {status} {error}")
        before = items(pool.paths)
        status, lines, error = pool.run(pool.old, "--as", OTHER, "ring", "move", "--to", pool.new)
        check(status == 65 and not lines and "this move is done" in error and items(pool.paths) == before, f"again: {status} {lines} {error}")


def a_file_without_the_record():
    with ExitStack() as stack:
        pool = Pool(stack, 2)
        text = "".join(f"add {key} 0 0 1\r\nx\r\n" for key in names(20))
        status, lines, error = pool.run(pool.old, "item", "load", "-", stdin=text)
        check(status == 0 and lines[-1]["loaded"] == 20 and "does not record where its items were" in error, f"{status} {lines} {error}")


def keep_has_no_gate():
    with ExitStack() as stack:
        pool = Pool(stack, 2)
        pool.write(names(300), WRITER)
        before = items(pool.paths)
        flush = f"printf 'flush_all\\r\\n' > {pool.file}"
        status, lines, error = pool.run(pool.old, "item", "keep", "--on", "unix:" + pool.paths[0], "--", "sh", "-c", flush)
        check(status in (0, 2) and "explains" not in error and items(pool.paths) == before, f"keep: {status} {lines} {error}")


def main():
    for test in (a_wrong_profile, an_unknown_client, two_writers, few_keys, a_file, keys_of_one_server, astray_items_of_a_file, a_move_that_is_done,
                 a_file_without_the_record, keep_has_no_gate):
        test()
    finish()


if __name__ == "__main__":
    main()
