#!/usr/bin/env python3
"""Structures go through 1, 2, 3 and 1 copies while writers use them, and the program that does it is killed at its every send.

Usage: recopy_test.py BUILD_DIR; needs strace. Writers give whatever number they were last told, as people do who read the
message. What was acknowledged is there afterwards, under the last number alone.
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from recopies import FULL, NUMBERS, four_servers, kill_at, run, told_copies

KILLS = {"array": [14, 26, 33], "hash": [25, 40, 34], "table": []}
WRITERS = 16 if FULL else 6


class Writer(threading.Thread):
    """One command after another until it is told to stop; knows what it left acknowledged."""

    def __init__(self, structure, name, number):
        super().__init__()
        self.structure, self.name_, self.number = structure, name, number
        self.copies = 1
        self.there, self.gone, self.doubtful = {}, set(), set()
        self.statuses = {}
        self.ends = threading.Event()
        self.count = 0

    def run(self):
        while not self.ends.is_set():
            self.count += 1
            self.ends.wait(0.01)
            mine = f"w{self.number}.{self.count % 7}" if self.structure != "array" else f"w{self.number}.{self.count}"
            if self.there and self.count % 5 == 4:
                self.change("delete" if self.structure == "array" else "remove", sorted(self.there)[0], None)
            else:
                self.change("set" if self.structure == "hash" else "add", mine, str(self.count))

    def change(self, verb, element, value):
        words = [self.structure, verb, self.name_, element] + ([value] if verb == "set" else [])
        while not self.ends.is_set():
            done = run(*words, "--copies", str(self.copies))
            self.statuses[done.returncode] = self.statuses.get(done.returncode, 0) + 1
            told = told_copies(done)
            if told:
                self.copies = told
                continue
            if done.returncode == 75:
                continue
            break
        else:
            return
        self.there.pop(element, None)
        self.gone.discard(element)
        self.doubtful.discard(element)
        if done.returncode not in (0, 1):
            self.doubtful.add(element)
            if done.returncode != 80:
                check(False, f"{' '.join(words)} ends with {done.returncode}: {done.stderr}")
        elif value is None:
            self.gone.add(element)
        else:
            self.there[element] = value


def fetched(structure, name, copies):
    done = run(structure, "fetch", name, "--copies", str(copies), "-o", "json")
    check(done.returncode == 0, f"{structure} fetch --copies {copies} ends with {done.returncode}: {done.stdout[:300]}{done.stderr}")
    if done.returncode not in (0, 2):
        return None
    if structure == "array":
        return {value: None for value in json.loads(done.stdout)["values"]}
    return {line.get("field") or line.get("member"): line.get("value")
            for line in map(json.loads, done.stdout.splitlines())}


def go_around(structure, kills):
    name = f"moving{len(kills)}"
    standing = [f"s{number}" for number in range(300 if structure == "array" else 60)]
    for element in [standing[at:at + 50] for at in range(0, len(standing), 50)]:
        if structure == "hash":
            for field in element:
                run("hash", "set", name, field, "x")
        else:
            run(structure, "add", name, *element)
    writers = [Writer(structure, name, number) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    killed = 0
    try:
        for turn, call in enumerate(kills or [0, 0, 0]):
            copies = NUMBERS[turn % len(NUMBERS)]
            words = [structure, "recopy", name, "--copies", str(copies)]
            # Wherever it is killed, a writer or the next one completes it.
            killed += call != 0 and kill_at(call, words)
            done = run(*words)
            check(done.returncode == 0, f"{' '.join(words)} ends with {done.returncode}: {done.stderr}")
            there = fetched(structure, name, copies) or {}
            check(set(standing) <= set(there), f"{structure}, {copies} copies, killed at {call}: {sorted(set(standing) - set(there))[:9]} are lost")
    finally:
        for writer in writers:
            writer.ends.set()
        for writer in writers:
            writer.join()
    there = fetched(structure, name, copies) or {}
    for writer in writers:
        for element, value in writer.there.items():
            check(element in there, f"{structure}: {element} was acknowledged and is lost")
            if structure == "hash":
                check(there.get(element) == value, f"hash: {element} is {there.get(element)}, not {value}")
        for element in writer.gone - writer.doubtful:
            check(element not in there, f"{structure}: {element} was removed and is back")
    statuses = {}
    for writer in writers:
        for status, count in writer.statuses.items():
            statuses[status] = statuses.get(status, 0) + count
    check(statuses.get(0, 0) > 0, f"{structure}: nothing was written meanwhile: {statuses}")
    check(killed == len(kills), f"{structure}: killed only {killed} times")
    print(f"{structure}: commands by exit code {dict(sorted(statuses.items()))}, killed {killed} times")


def main():
    with four_servers(512 if FULL else 32):
        for structure in ("array", "hash", "table"):
            go_around(structure, KILLS[structure] if not FULL else list(range(1, 46)))


main()
finish()
