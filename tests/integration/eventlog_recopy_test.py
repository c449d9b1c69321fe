#!/usr/bin/env python3
"""An event log goes through 2, 3 and 1 copies while writers put, a tail and a cursor read, and the mover is killed at its sends.

Usage: eventlog_recopy_test.py BUILD_DIR; needs strace. Clients give whatever number they were last told, as people do who read
the message. Every acknowledged event is fetched once, and delivered once by the cursor and by the tail.
"""
import collections
import json
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from recopies import FULL, NUMBERS, four_servers, kill_at, mcds, run, told_copies, told_number

KILLS = list(range(1, 31)) if FULL else [3, 8, 15]
WRITERS = 4


class Follower(threading.Thread):
    """Repeats what it does until it is told to stop, with the number that the last refusal named."""

    def __init__(self):
        super().__init__()
        self.copies = 1
        self.ends = threading.Event()
        self.refusals = 0

    def command(self, *words):
        while True:
            done = run(*words, "--copies", str(self.copies))
            told = told_copies(done)
            if not told:
                return done
            self.copies = told
            self.refusals += 1

    def run(self):
        while not self.ends.is_set():
            self.act()


class Writer(Follower):
    def __init__(self, number):
        super().__init__()
        self.number = number
        self.count = 0
        self.acknowledged = []

    def act(self):
        text = f"w{self.number}.{self.count}"
        self.count += 1
        done = self.command("eventlog", "put", "moving", text)
        check(done.returncode == 0, f"put {text} ends with {done.returncode}: {done.stderr}")
        self.acknowledged.append(text)


class Reader(Follower):
    def __init__(self, cursor):
        super().__init__()
        self.cursor = cursor
        self.delivered = []

    def act(self):
        done = self.command("eventlog", "fetch", "moving", "--cursor", self.cursor, "-o", "value")
        check(done.returncode == 0, f"fetch --cursor ends with {done.returncode}: {done.stderr}")
        check("lost" not in done.stderr, f"a gap is told: {done.stderr}")
        self.delivered += done.stdout.split()


class Tail(Follower):
    """tail -f with a cursor: refused, it is run again with the number told."""

    def __init__(self, cursor):
        super().__init__()
        self.cursor = cursor
        self.printed = []

    def act(self):
        words = ["eventlog", "tail", "moving", "-f", "--every", "50ms", "--cursor", self.cursor, "-o", "value",
                 "--copies", str(self.copies)]
        with subprocess.Popen([mcds, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tail:
            while not self.ends.wait(0.02) and tail.poll() is None:
                pass
            if tail.poll() is None:
                tail.send_signal(signal.SIGTERM)
            out, err = tail.communicate(timeout=60)
        self.printed += out.split()
        told = told_number(tail.returncode, err)
        if told:
            self.copies = told
            self.refusals += 1
        else:
            # One that has just been started is ended before it has begun to wait for signals, or to print.
            ended = tail.returncode == 0 or (tail.returncode == -signal.SIGTERM and not out)
            check(ended and not err, f"tail ends with {tail.returncode}: {err}")


def once(what, texts, wanted):
    counts = collections.Counter(texts)
    check(set(counts) == wanted, f"{what}: {len(wanted - set(counts))} are missing, {sorted(wanted - set(counts))[:5]}, "
          f"{len(set(counts) - wanted)} too many")
    twice = [text for text, count in counts.items() if count > 1]
    check(not twice, f"{what}: {len(twice)} come twice, such as {twice[:3]}")


def go_around(directory):
    run("eventlog", "put", "moving", "first")
    writers = [Writer(number) for number in range(WRITERS)]
    reader = Reader(os.path.join(directory, "cursor"))
    tail = Tail(os.path.join(directory, "tail"))
    killed = 0
    taken = []
    for thread in [*writers, reader, tail]:
        thread.start()
    try:
        for turn, call in enumerate(KILLS):
            copies = NUMBERS[turn % len(NUMBERS)]
            words = ["eventlog", "recopy", "moving", "--copies", str(copies)]
            killed += kill_at(call, words)
            done = run(*words)
            check(done.returncode == 0, f"{' '.join(words)} ends with {done.returncode}: {done.stderr}")
            there = run("eventlog", "fetch", "moving", "--copies", str(copies), "-o", "value").stdout.split()
            check("first" in there, f"killed at send {call}: the first event is lost")
            # A part that a writer began while the log was leaving has room, and is read (eventlog.hpp).
            late = f"late{turn}"
            done = run("eventlog", "put", "moving", late, "--copies", str(NUMBERS[(turn + 1) % len(NUMBERS)]))
            check(done.returncode in (0, 65), f"a put with another number: {done.stdout}{done.stderr}")
            if done.returncode == 0:
                taken.append(late)
    finally:
        for thread in [*writers, reader, tail]:
            thread.ends.set()
        for thread in [*writers, reader, tail]:
            thread.join()
    check(len(taken) < len(KILLS), "no other number is refused")
    wanted = {"first", *taken}.union(*(writer.acknowledged for writer in writers))
    reader.act()
    tail.ends.clear()
    last = run("eventlog", "tail", "moving", "--cursor", tail.cursor, "-o", "value", "--copies", str(copies))
    done = run("eventlog", "fetch", "moving", "--copies", str(copies))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    check(not any("gap" in line for line in lines), "a gap is told")
    once("fetch", [line["data"] for line in lines if "data" in line], wanted)
    once("cursor", reader.delivered, wanted)
    # A new cursor of a tail begins with the last 10 events.
    printed = tail.printed + last.stdout.split()
    once("tail", printed, wanted & set(printed))
    check(len(wanted - set(printed)) < WRITERS * 20, f"tail: {len(wanted - set(printed))} of {len(wanted)} are missing")
    check(sum(thread.refusals for thread in [*writers, reader, tail]) > 0, "nobody was refused")
    check(killed == len(KILLS) or FULL, f"killed only {killed} times")
    print(f"{len(wanted)} events, {killed} kills, {sum(writer.refusals for writer in writers)} refusals of writers")


def main():
    with four_servers(64) as directory:
        go_around(directory)


main()
finish()
