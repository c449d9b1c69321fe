#!/usr/bin/env python3
"""A pool grows and shrinks while applications go on by the old list, and the move is killed at random and taken up again: nothing is lost,
and nothing stays behind.

Usage: ring_move_test.py BUILD_DIR [ITEMS]

MCDS_TEST_SEED repeats a run's random choices. With MCDS_TEST_FULL=1 there are 200 000 items and 8 writing processes, and the move is killed
ten times.
"""
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, failures, finish
from program import MCDS
from real_servers import Servers, connected, statistics

ITEMS = int(sys.argv[2]) if len(sys.argv) > 2 else 200000 if FULL else 4000
KILLS = 10 if FULL else 4
TTL_TOLERANCE_S = 2
# An item lives up to a second shorter than it is told to, on any server.
OWN_TOLERANCE_S = 1
WRITERS = 8 if FULL else 3
SEED = int(os.environ.get("MCDS_TEST_SEED", time.time_ns() % 1000000))
dice = random.Random(SEED)


class Pool:
    """A list of servers, as one client places keys on them."""

    def __init__(self, names, directory, profile):
        self.paths = [os.path.join(directory, name) for name in names]
        self.profile = profile
        # A list of keys waits for a thread of the server's, which a busy machine may leave waiting.
        self.options = ["-s", ",".join(f"{name}=unix:{path}" for name, path in zip(names, self.paths)), "--as", profile, "--timeout", "10s"]

    def command(self, *words):
        return [MCDS, *self.options, *words]

    def run(self, *words, status=0, text=None):
        done = subprocess.run(self.command(*words), input=text, capture_output=True, text=True, check=False)
        check(done.returncode == status, f"{words}: ends with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        return done.stdout

    def lines(self, *words):
        return [json.loads(line) for line in self.run(*words).splitlines()]

    def places(self, keys):
        addresses = self.run("where", "-", "-o", "value", text="".join(key + "\n" for key in keys)).split()
        return dict(zip(keys, (address.removeprefix("unix:") for address in addresses)))


class Application:
    """Items with flags and ttls, each written by one of the writers, over connections of its own."""

    def __init__(self, pool):
        self.keys = [f"app:{number}" for number in range(ITEMS)]
        self.places = pool.places(self.keys)
        self.items = {}  # key to (value, flags, when it ends: between these times; None: never)

    def store(self, key, value, files, places):
        number = int(key.split(":")[1])
        flags, ttl = number % 7, 0 if number % 3 else 1000 + number % 5000
        files[places[key]].write(f"set {key} {flags} {ttl} {len(value)}\r\n{value}\r\n".encode())
        return value, flags, ttl

    def write(self, keys, places, value_of, stack):
        files = {path: stack.enter_context(connected(path)) for path in set(places.values())}
        for at in range(0, len(keys), 100):
            batch = keys[at:at + 100]
            before = time.time()
            written = {key: self.store(key, value_of(key), files, places) for key in batch}
            for file in files.values():
                file.flush()
            for key in batch:
                line = files[places[key]].readline()
                check(line == b"STORED\r\n", f"set {key}: {line}")
            after = time.time()
            for key, (value, flags, ttl) in written.items():
                self.items[key] = value, flags, (before + ttl, after + ttl) if ttl else None

    def own_keys(self, number):
        return self.keys[number::WRITERS * 10]

    def go_on(self, number, stop, record):
        """A process: writes a few of its own items again and again, by the old list, and reads them and others. What was acknowledged is in
        `record`, as a line for each batch; last comes what it found wrong."""
        own = self.own_keys(number)
        chance = random.Random(SEED + number)
        failures.clear()  # those of the process that it was forked from
        turn, wrong = 0, []
        with open(record, "w", encoding="utf-8") as acknowledged:
            while not stop.is_set():
                turn += 1
                with ExitStack() as stack:
                    some = chance.sample(own, min(len(own), 50))
                    self.write(some, self.places, lambda key, turn=turn: f"{key} turn {turn} " + "x" * chance.randrange(100), stack)
                    acknowledged.write(json.dumps({key: self.items[key] for key in some}) + "\n")
                    acknowledged.flush()
                    for key, got in self.read(some + chance.sample(self.keys, 50), self.places, stack).items():
                        if got is None or (key in own and got[:2] != tuple(self.items[key][:2])):
                            wrong.append(f"turn {turn}: {key}: {got}")
                time.sleep(0.01)
            acknowledged.write(json.dumps(wrong + failures) + "\n")

    def take_record(self, where, record):
        with open(record, encoding="utf-8") as file:
            *acknowledged, wrong = map(json.loads, file)
        check(acknowledged != [], f"{where}: a writer wrote nothing")
        check(wrong == [], f"{where}: by the old list: {str(wrong)[:500]}")
        for batch in acknowledged:
            self.items.update(batch)

    def read(self, keys, places, stack):
        files = {path: stack.enter_context(connected(path)) for path in set(places.values())}
        for key in keys:
            files[places[key]].write(f"mg {key} v f t\r\n".encode())
        for file in files.values():
            file.flush()
        return {key: self.item_of(files[places[key]]) for key in keys}

    def verify(self, where, places):
        wrong = []
        keys = list(self.items)
        for at in range(0, len(keys), 1000):
            before = time.time()
            with ExitStack() as stack:
                got = self.read(keys[at:at + 1000], places, stack)
            after = time.time()
            wrong += [f"{key}: {found} for {self.items[key]} at {before}" for key, found in got.items()
                      if not self.is_same(self.items[key], found, before, after)]
        check(not wrong, f"{where}: {len(wrong)} items of {len(self.items)} are wrong: {wrong[:5]}")

    @staticmethod
    def item_of(file):
        """Value, flags and what is left of its ttl; None: there is none."""
        words = file.readline().split()
        return (file.read(int(words[1]) + 2)[:-2].decode(), int(words[2][1:]), int(words[3][1:])) if words[0] == b"VA" else None

    @staticmethod
    def is_same(item, got, before, after):
        if got is None or got[:2] != tuple(item[:2]):
            return False
        if item[2] is None or got[2] == -1:
            return item[2] is None and got[2] == -1
        earliest, latest = item[2]
        return earliest - after - OWN_TOLERANCE_S - TTL_TOLERANCE_S <= got[2] <= latest - before + TTL_TOLERANCE_S


class Structures:
    """Written by the old list all the time."""

    def __init__(self, pool):
        self.pool = pool
        self.fields = {f"f{number}": str(number) for number in range(ITEMS // 2)}
        self.members = {f"m{number}" for number in range(ITEMS // 10)}
        self.elements = [f"element-{number}-" + "x" * 60 for number in range(22000)]
        self.events = []
        pool.run("hash", "set", "big", "-", text="".join(f"{field}\t{value}\n" for field, value in self.fields.items()))
        pool.run("table", "add", "names", "-", text="".join(member + "\n" for member in self.members))
        pool.run("table", "add", "guests", *(f"guest{number}" for number in range(8)), "--ttl", "4h")
        pool.run("array", "add", "jobs", "-", text="".join(element + "\n" for element in self.elements))
        self.put_event("first")

    def put_event(self, text):
        self.pool.run("eventlog", "put", "log", text)
        self.events.append(text)

    def go_on(self, stop):
        turn = 0
        while not stop.is_set():
            turn += 1
            self.put_event(f"event {turn}")
            self.pool.run("hash", "set", "big", f"f{turn}", f"new {turn}", f"more{turn}", "1")
            self.fields[f"f{turn}"], self.fields[f"more{turn}"] = f"new {turn}", "1"
            self.pool.run("table", "add", "names", f"new{turn}")
            self.members.add(f"new{turn}")
            self.pool.run("array", "add", "jobs", f"new {turn}")
            self.elements.append(f"new {turn}")

    def verify(self, where, pool):
        got = {line["field"]: line.get("value") for line in pool.lines("hash", "fetch", "big")}
        check(got == self.fields, f"{where}: fields differ: {list(set(got.items()) ^ set(self.fields.items()))[:5]}")
        got = {line.get("member") for line in pool.lines("table", "fetch", "names")}
        check(got == self.members, f"{where}: members differ: {list(got ^ self.members)[:5]}")
        keys = [f"table:guests:v:guest{number}" for number in range(8)]
        probed = subprocess.run(pool.command("where", *keys, "--probe"), capture_output=True, text=True, check=False)
        guests = [json.loads(line) for line in probed.stdout.splitlines()]  # of some the old server has one, too
        ends = [copy.get("ttl_s") for line in guests for copy in line["copies"] if copy.get("owner") and copy.get("found")]
        check(len(ends) == 8 and all(end and 3600 < end <= 4 * 3600 for end in ends), f"{where}: the ends of members: {ends}")
        got = pool.lines("array", "fetch", "jobs")[0]["values"]
        check(got == self.elements, f"{where}: {len(got)} elements for {len(self.elements)}")
        got = pool.lines("eventlog", "fetch", "log")
        check([line.get("data") for line in got] == self.events, f"{where}: {len(got)} events for {len(self.events)}: {got[-2:]}")


def killed_at_random(command, times):
    """Then to its end, whose output is returned."""
    for _ in range(times):
        process = subprocess.Popen([*command, "--rate", str(ITEMS)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(dice.uniform(0.02, 0.3))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return subprocess.run(command, capture_output=True, text=True, check=False)


def summary_of(where, done):
    check(done.returncode == 0, f"{where}: ends with {done.returncode}: {done.stdout[-1500:]} {done.stderr[-500:]}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return lines[-1] if lines else {}


def change(old, new, journal, where):
    application, structures = Application(old), Structures(old)
    with ExitStack() as stack:
        application.write(application.keys, application.places, lambda key: f"{key} first", stack)
    old.run("lock", "acquire", "held", "--ttl", "1h")
    stop = multiprocessing.Event()
    records = [f"{journal}.writer{number}" for number in range(WRITERS)]
    writers = [multiprocessing.Process(target=application.go_on, args=(number, stop, record)) for number, record in enumerate(records)]
    for writer in writers:
        writer.start()
    structured = threading.Thread(target=structures.go_on, args=(stop,))
    structured.start()
    move = old.command("ring", "move", "--to", new.options[1], "--as-to", new.profile, "--journal", journal, "--list")
    try:
        first = summary_of(f"{where}: move", killed_at_random(move, KILLS))
    finally:
        stop.set()
        structured.join()
    check(first.get("copied", 0) + first.get("already", 0) > ITEMS // 10, f"{where}: little was moved: {first}")
    check(first.get("locks") == 1, f"{where}: the lock: {first}")
    for writer, record in zip(writers, records):
        writer.join()
        check(writer.exitcode == 0, f"{where}: a writer ended with {writer.exitcode}")
        application.take_record(where, record)
    # The clients have switched, and write.
    places = new.places(application.keys)
    quiet = [key for number, key in enumerate(application.keys) if number % (WRITERS * 10) >= WRITERS]
    with ExitStack() as stack:
        application.write(quiet[:100], places, lambda key: f"{key} by the new list", stack)
    again = summary_of(f"{where}: again", killed_at_random([*move, "--again"], KILLS // 2))
    check(again.get("left") == 0, f"{where}: again: {again}")
    application.verify(where, places)
    structures.verify(where, new)
    pruned = new.lines("where", "--prune", "--live", "--moved-from", old.options[1], "--as-from", old.profile,
                       "--journal", journal, "--yes", "--list")
    check(pruned[-1]["failed"] == 0 and pruned[-1]["on_old_places"] > 0, f"{where}: prune: {pruned}")
    old.run("lock", "release", "held", "--force")
    verdicts = new.lines("where", "--probe", "--live")[-1]["verdicts"]
    check(set(verdicts) == {"ok"}, f"{where}: after the prune: {verdicts}")
    for path in set(old.paths) - set(new.paths):
        there = statistics(path)["curr_items"]
        check(int(there) <= 1, f"{where}: {path} still has {there} items")
    application.verify(where, places)
    structures.verify(where, new)


def crashed(profile, before, after, names):
    """Tries a change of pools. Returns what was found if a server crashed meanwhile."""
    known = len(failures)
    with ExitStack() as stack:
        # Before 1.6.24 an item that is moved to another page gets a new cas, as if a client had written it.
        servers = stack.enter_context(Servers(names, "-m", "128", "-o", "slab_automove=0"))
        directory, where = servers.directory, f"{profile}, {len(before)} to {len(after)}, seed {SEED}"
        try:
            change(Pool(before, directory, profile), Pool(after, directory, profile), os.path.join(directory, "journal"), where)
        except (KeyError, IndexError, TypeError, ValueError, OSError) as error:  # of an answer that is not there: what was found before says why
            check(False, f"{where}: {error!r}")
        if all(process.poll() is None for process in servers.processes):
            return []
    return failures[known:]


def main():
    names = ["m1", "m2", "m3", "m4"]
    for profile in ("ketama", "gomemcache"):
        for before, after in ((names[:3], names), (names, names[:3])):
            # Some releases of memcached can crash when a client leaves at the end of a dump, as a killed move does.
            for _ in range(3):
                found = crashed(profile, before, after, names)
                if not found:
                    break
                print(f"a server crashed; {profile}, {len(before)} to {len(after)} is tried again")
                del failures[-len(found):]
            else:
                failures.extend(found)


if __name__ == "__main__":
    main()
    finish()
