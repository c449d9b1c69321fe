#!/usr/bin/env python3
"""Servers whose memory is used up: nothing that was acknowledged goes without a word. Usage: full_cache_test.py BUILD_DIR

What a structure acknowledged is read back, or the command that wrote it, or the one that reads it, says that something is
lost: on a full server that evicts, on a full server that refuses (-M, and -C), and where structures evict each other.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
import program
from program import MCDS, wait_for
from real_servers import Servers, ask, connected



class Pool(Servers):
    """One server on a socket of its own, and the program on it."""

    def __init__(self, *flags):
        super().__init__(1, *flags)

    @property
    def path(self):
        return self.paths[0]

    def run(self, *words, lines=None, options=()):
        text = None if lines is None else "".join(line + "\n" for line in lines)
        return program.run(self.list, *options, *words, input=text)

    def fill(self, size, bytes_of_all):
        """An application's items of one size, in so many bytes."""
        value = b"a" * size
        with connected(self.path) as file:
            for at in range(0, bytes_of_all // (size + 60), 10000):
                file.write(b"".join(b"set app:%d:%d 0 0 %d noreply\r\n%s\r\n" % (size, i, size, value) for i in range(at, at + 10000)))
            file.write(b"mn\r\n")
            file.flush()
            while not file.readline().startswith(b"MN"):  # refusals are told even so
                pass

    def remove(self, key):
        ask(self.path, b"delete " + key)


def objects(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def is_said(write):
    return write.returncode == 2 and write.stderr.count(" was lost or dropped ") == 1 and '"lost_or_dropped":true' in write.stdout


def is_refused(write):
    return write.returncode in (75, 76) and '"error"' in write.stderr


def check_write(what, write):
    check(write.returncode == 0 or is_said(write) or is_refused(write),
          f"{what}: exit {write.returncode} has its words: {write.stderr[:200]}")


def array(pool, what, name, size, count):
    write = pool.run("array", "add", name, "-", lines=[f"v{i} " + "z" * size for i in range(count)])
    read = pool.run("array", "fetch", name)
    check_write(f"{what}, array", write)
    answer = objects(read)[0] if read.stdout else {}
    added = objects(write)[0]["adds"]
    lost = '"lost_or_dropped":true' in write.stdout or answer.get("complete") is False or read.returncode == 1
    check(answer.get("count", 0) >= added or lost,
          f"{what}: {added} values of an array are acknowledged, {answer.get('count')} are there, and a loss is said")
    check(answer.get("complete") is not False or read.returncode == 2, f"{what}: an array that is not whole is no success")


def eventlog(pool, what, name, size, count):
    write = pool.run("eventlog", "put", name, "-", lines=[f"e{i} " + "z" * size for i in range(count)])
    read = pool.run("eventlog", "fetch", name)
    check_write(f"{what}, log", write)
    put = objects(write)[0]["events"]
    events = [line for line in objects(read) if "id" in line]
    lost = '"lost_or_dropped":true' in write.stdout or '"gap":true' in read.stdout or read.returncode == 1
    check(len(events) >= put or lost, f"{what}: {put} events are acknowledged, {len(events)} are there, and a loss is said")


def elements(pool, what, structure, name, size, count):
    verb, lines = ("add", [f"m{i} " + "z" * size for i in range(count)]) if structure == "table" else (
        "set", [f"f{i}\t" + "z" * size for i in range(count)])
    write = pool.run(structure, verb, name, "-", lines=lines)
    check_write(f"{what}, {structure}", write)
    acknowledged = write.stdout.count("\n")
    read, state = pool.run(structure, "fetch", name), objects(pool.run(structure, "check", name))[0]
    there = sum("complete" not in line for line in objects(read))
    lost = '"lost_or_dropped":true' in write.stdout or not state["complete"] or '"found":false' in read.stderr
    check(there + state["missing"] >= acknowledged or lost,
          f"{what}: {acknowledged} of a {structure} are acknowledged, {there} are there, {state['missing']} are missing, and more is said")
    check(state["count"] + state["missing"] == state["listed"], f"{what}: {structure} check adds up: {state}")
    check(state["missing"] == 0 or read.stderr.count("no longer exist, because they were removed, expired or evicted") == 1,
          f"{what}: a fetch says in one line what is missing: {read.stderr[:200]}")


def counters(pool, what, count):
    write = pool.run("counter", "incr", "-", lines=[f"c{i}" for i in range(count)])
    names = [line["counter"] for line in objects(write)]
    read = pool.run("counter", "get", "-", lines=names)
    found = sum(line["found"] for line in objects(read))
    check(found == len(names) or read.returncode == 1,
          f"{what}: {len(names)} counters are acknowledged, {found} are there, and exit {read.returncode} tells them apart")


def others(pool, what):
    lock = pool.run("lock", "acquire", "nightly", "--ttl", "1m")
    shown = pool.run("lock", "show", "nightly")
    check(lock.returncode != 0 or shown.returncode == 0, f"{what}: a lock is held, or not said to be")
    run = pool.run("cache", "run", "--ttl", "1m", "--", "echo", "built")
    check(run.stdout == "built\n" and run.returncode == 0, f"{what}: a command in the cache gives its output: {run.stdout!r}")
    hit = pool.run("visitors", "hit", "site")
    value = pool.run("visitors", "value", "site", "--current")
    check(hit.returncode != 0 or objects(value)[0]["value"] >= 1, f"{what}: a visit is counted, or not said to be")


def every(pool, what):
    array(pool, what, "a", 200, 5000)
    array(pool, what, "b", 20, 20000)
    eventlog(pool, what, "l", 200, 10000)
    elements(pool, what, "table", "t", 20, 10000)
    elements(pool, what, "hash", "h", 100, 10000)
    counters(pool, what, 20000)
    others(pool, what)


def on_a_full_server_that_evicts():
    with Pool("-m", "64") as pool:
        pool.fill(150, 80 << 20)
        every(pool, "full, evicting")
        seen = pool.run("doctor", "--live", "--for", "1s")
        found = {line["finding"]: line["evidence"] for line in objects(seen) if "finding" in line}
        check("evicted_before" in found, f"doctor tells what was evicted before it looked: {sorted(found)}")
        check(found.get("evicted_before", {}).get("structures"), "doctor names our structures among what was hit")
        check(found.get("one_page", {}).get("names"), "doctor tells of classes with one page")


def on_a_full_server_that_refuses():
    with Pool("-m", "32", "-M") as pool:
        for size in (150, 3000, 100, 20):
            pool.fill(size, 40 << 20)
        for period in ("5m", "1d"):
            hit = pool.run("visitors", "hit", "new", "--period", period)
            check(hit.returncode == 76, f"a first hit of {period} is refused, as all is: {hit.returncode} {hit.stderr}")
        every(pool, "full, refusing")


def one_after_the_other_in_an_empty_server():
    with Pool("-m", "64") as pool:
        elements(pool, "empty", "table", "t", 100, 60000)
        eventlog(pool, "empty", "l", 100, 60000)
        array(pool, "empty", "a", 100, 60000)
        again = objects(pool.run("table", "check", "t"))[0]
        check(again["count"] == 60000 or again["missing"] > 0 or not again["complete"],
              f"empty: what a table lost to the others is said: {again}")


def a_refusal_ends_the_window():
    """Counted, not timed: each window of some 600 lines may cost two tries, each of them some requests."""
    for flags, filling in ((("-m", "32", "-M"), True), (("-m", "64", "-C"), False)):
        with Pool(*flags) as pool:
            for size in (150, 3000, 100, 20) if filling else ():
                pool.fill(size, 40 << 20)
            done = pool.run("array", "add", "a", "-", lines=[f"v{i} " + "z" * 100 for i in range(30000)], options=("-v",))
            sent = sum(" array:a" in line for line in done.stderr.splitlines())
            check(sent < 3000 and done.returncode == 76,
                  f"{flags}: 30,000 lines that are refused take {sent} requests (exit {done.returncode})")


def a_second_creation_is_a_loss():
    """What a rival removes between two windows; deletions stand for evictions."""
    for structure, verb, key in (("array", "add", b"array:x"), ("counter", "incr", b"counter:x")):
        with Pool() as pool:
            words = [structure, verb, "x", "-"] if structure == "array" else [structure, verb, "-"]
            with subprocess.Popen([MCDS, "-s", f"unix:{pool.path}", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, bufsize=1) as program:
                program.stdin.write("x\n")
                wait_for(lambda: ask(pool.path, b"get " + key).startswith(b"VALUE"), f"{key}")  # noqa: B023
                pool.remove(key)
                program.stdin.write("x\n")
                out, err = program.communicate(timeout=60)
            check(program.returncode == 2 and out.count('"lost_or_dropped":true') == 1 and err.count("was lost or dropped") == 1,
                  f"{structure}: created twice is exit 2, and said: {out} {err}")


def a_table_counts_what_it_cannot_know():
    with Pool() as pool:
        pool.run("table", "add", "t", "a", "b", "c")
        for member in (b"a", b"b", b"c"):
            pool.remove(b"table:t:v:" + member)
        state = pool.run("table", "check", "t")
        check(state.returncode == 0 and '"count":0,"listed":3,"missing":3' in state.stdout and '"lost"' not in state.stdout,
              f"a table without its members is whole, and misses three: {state.stdout}")
        count = pool.run("table", "count", "t")
        check(count.returncode == 0 and '"count":0,"listed":3,"missing":3' in count.stdout and "lost" not in count.stdout,
              f"count tells it too: {count.stdout}")
        fetch = pool.run("table", "fetch", "t")
        check(fetch.returncode == 0 and fetch.stdout == "" and fetch.stderr.count("\n") == 1 and "3 of 3 listed members" in fetch.stderr,
              f"fetch says it on standard error alone: {fetch.stderr}")


a_table_counts_what_it_cannot_know()
a_second_creation_is_a_loss()
a_refusal_ends_the_window()
on_a_full_server_that_evicts()
on_a_full_server_that_refuses()
one_after_the_other_in_an_empty_server()
finish()
