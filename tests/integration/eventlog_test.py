#!/usr/bin/env python3
"""Readers of an event log are killed at random moments, overlap, and lose their servers: no event is lost.

Usage: eventlog_test.py BUILD_DIR; MCDS_TEST_SECONDS sets how long writers write (8), MCDS_TEST_SEED when readers die.
"""
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import program
from checks import check, finish
from program import MCDS, environment, wait_for
from real_servers import Servers, ask, item

SECONDS = float(os.environ.get("MCDS_TEST_SECONDS", "8"))
SEED = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))


class World(Servers):
    def run(self, *arguments, **options):
        return program.run(self.list, *arguments, text=False, **options)

    def spawn(self, *arguments, **options):
        return subprocess.Popen([MCDS, "-s", self.list, *arguments], env=environment(), **options)


def lines_of(path):
    with open(path, "rb") as file:
        data = file.read()
    # What a killed reader was writing may end anywhere.
    return [line.decode() for line in data.split(b"\n") if line.startswith(b'{"id"') and line.endswith(b"}")]


def killed_readers(directory, choice):
    """Writers write; readers with one cursor are killed with SIGKILL: everything is delivered, and what is delivered
    again was delivered by a run that was killed."""
    with World(2, "-m", "64") as servers:
        writers = [servers.spawn("eventlog", "put", "x", "-", "--chunk", "2s", "--chunks", "100", stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL) for _ in range(4)]
        put = set()
        runs = []
        kills = 0
        end = time.monotonic() + SECONDS
        number = 0
        while time.monotonic() < end:
            for index, writer in enumerate(writers):
                batch = [f"{index}.{number + i}" for i in range(choice.randrange(40))]
                put.update(batch)
                writer.stdin.write("".join(line + "\n" for line in batch).encode())
                writer.stdin.flush()
            number += 40
            path = os.path.join(directory, f"run{len(runs)}")
            with open(path, "wb") as out:
                reader = servers.spawn("eventlog", "fetch", "x", "--cursor", os.path.join(directory, "cursor"), stdout=out)
                if choice.random() < 0.7:
                    time.sleep(choice.uniform(0, 0.012))
                    reader.kill()
                    kills += 1
                status = reader.wait()
            runs.append((path, status))
        for writer in writers:
            writer.stdin.close()
            check(writer.wait() == 0, "a writer failed")
        final = servers.run("eventlog", "fetch", "x", "--cursor", os.path.join(directory, "cursor"))
        path = os.path.join(directory, "final")
        with open(path, "wb") as out:
            out.write(final.stdout)
        runs.append((path, final.returncode))
        seen = {}
        again = 0
        twice = []
        odd = sorted({status for _, status in runs} - {0, -signal.SIGKILL})
        check(not odd, f"readers ended with {odd}")
        for path, status in runs:
            for line in lines_of(path):
                event = json.loads(line)
                if event["id"] in seen:
                    again += 1
                    if seen[event["id"]] == 0:
                        twice.append(event["id"])
                seen[event["id"]] = status
        check(not twice, f"{len(twice)} events that a run had delivered to its end came again: {twice[:3]}")
        texts = [json.loads(line)["data"] for path, _ in runs for line in lines_of(path)]
        check(set(texts) == put, f"{len(put - set(texts))} of {len(put)} events were never delivered")
        print(f"{len(put)} events, {len(runs)} readers, {kills} killed, {again} events came again after a kill")
        check(b'"gap"' not in final.stdout, "a gap although nothing was lost")


def failing_consumers(directory, choice):
    """Consumers that fail see the same events again; the one that succeeds has each exactly once."""
    with World(2, "-m", "64") as servers:
        log = os.path.join(directory, "log")
        put = []
        for i in range(60):
            put.append(str(i))
            check(servers.run("eventlog", "put", "x", str(i)).returncode == 0, "put failed")
            succeed = choice.random() < 0.4
            script = 'cat >> "$0"' if succeed else "cat >/dev/null; exit 7"
            done = servers.run("eventlog", "fetch", "x", "-o", "value", "--cursor", os.path.join(directory, "cursor"), "--",
                               "sh", "-c", script, log)
            check(done.returncode == (0 if succeed else 7), f"fetch ended with {done.returncode}")
        servers.run("eventlog", "fetch", "x", "-o", "value", "--cursor", os.path.join(directory, "cursor"), "--", "sh", "-c",
                    'cat >> "$0"', log)
        with open(log, encoding="utf-8") as file:
            check(file.read().split() == put, "a consumer that succeeds has not each event once and in order")


def overlapping_runs(directory):
    with World(2, "-m", "64") as servers:
        servers.run("eventlog", "put", "x", "event")
        cursor = os.path.join(directory, "cursor")
        slow = servers.spawn("eventlog", "fetch", "x", "--cursor", cursor, "--", "sh", "-c", f"touch {directory}/runs; sleep 300",
                             stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(os.path.join(directory, "runs")))
        check(servers.run("eventlog", "fetch", "x", "--cursor", cursor).returncode == 75, "an overlapping run is not 75")
        slow.kill()
        slow.wait()
        # The killed run's child is ended with it; its event is still undelivered.
        done = wait_for(lambda: (done := servers.run("eventlog", "fetch", "x", "--cursor", cursor, "-o", "value")).returncode != 75 and done)
        check(done.stdout == b"event\n", f"after a kill the event is not delivered: {done}")


def ring_turns(directory):
    with World(2, "-m", "64") as servers:
        ring = ("--chunk", "1s", "--chunks", "2")
        cursor = os.path.join(directory, "cursor")
        servers.run("eventlog", "put", "x", "first", *ring)
        servers.run("eventlog", "fetch", "x", "--cursor", cursor)
        servers.run("eventlog", "put", "x", "never read", *ring)
        time.sleep(6.5)
        servers.run("eventlog", "put", "x", "last", *ring)
        done = servers.run("eventlog", "fetch", "x", "--cursor", cursor).stdout.decode().splitlines()
        check(len(done) == 2 and json.loads(done[0]).get("reason") == "expired", f"no expired gap: {done}")
        check(json.loads(done[-1])["data"] == "last", f"what came after the gap is missing: {done}")
        check(servers.run("eventlog", "fetch", "x", "--cursor", cursor).stdout == b"", "the gap is reported twice")


def killed_drops(directory, choice):
    """What is put after a drop was killed is read, without telling the shape, and a second drop leaves nothing."""
    with World(2, "-m", "64") as servers:
        killed, took = 0, 0.012  # seconds of a whole drop
        for number in range(40):
            ring = ("--chunk", "1h", "--chunks", "72") if number % 2 else ()
            for age in range(0, 60, 6):
                servers.run("eventlog", "put", "x", "old", "--at", f"{age}m", *ring)
            drop = servers.spawn("eventlog", "drop", "x", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(choice.uniform(0, took))
            drop.kill()
            killed += drop.wait() != 0
            for event in range(3):
                check(servers.run("eventlog", "put", "x", f"new{event}", *ring).returncode == 0, "a put after a killed drop")
            found = servers.run("eventlog", "fetch", "x", "-o", "value").stdout.split()
            check([line for line in found if line != b"old"] == [b"new0", b"new1", b"new2"], f"after a killed drop: {found}")
            began = time.monotonic()
            done = servers.run("eventlog", "drop", "x")
            took = min(0.012, time.monotonic() - began)
            check(done.returncode == 0 and not servers.run("item", "list", "-o", "value").stdout, f"a second drop: {done}")
        check(killed > 5, f"only {killed} of 40 drops were killed")


def tail_over_restarts(directory):
    with World(2, "-m", "64") as servers:
        out = os.path.join(directory, "out")
        with open(out, "wb") as file:
            tail = servers.spawn("eventlog", "tail", "x", "-f", "--every", "100ms", "-o", "value", stdout=file,
                                 stderr=subprocess.DEVNULL)
        slowest = 0.0
        for i in range(12):
            if i % 4 == 3:
                servers.restart(i // 4 % 2)
            while servers.run("eventlog", "put", "x", f"event {i}").returncode != 0:
                time.sleep(0.01)
            begun = time.monotonic()
            wait_for(lambda: f"event {i}\n" in open(out, encoding="utf-8").read(), "tail -f shows an event")  # noqa: B023
            slowest = max(slowest, time.monotonic() - begun)
        print(f"tail -f --every 100ms: the slowest event was shown after {slowest * 1000:.0f} ms")
        tail.send_signal(signal.SIGTERM)
        check(tail.wait() == 0, "tail -f does not end quietly on TERM")
        check(sorted(open(out, encoding="utf-8").read().splitlines()) == sorted(f"event {i}" for i in range(12)),
              "tail -f showed not every event once")


def tail_before_the_first_event(directory):
    """The log begins with a shape of its own while tail waits for it."""
    for words in ((), ("--cursor", os.path.join(directory, "later"))):
        with World(1) as servers:
            tail = servers.spawn("eventlog", "tail", "late", "-f", "--every", "50ms", "-o", "value", *words, stdout=subprocess.PIPE)
            time.sleep(0.5)  # it has looked by now, or finds the event at its first look
            check(servers.run("eventlog", "put", "late", "first", "--chunks", "100").returncode == 0, "an event is put")
            ready = select.select([tail.stdout], [], [], 60)[0]
            check(ready and tail.stdout.readline() == b"first\n", f"{words}: tail of a log that begins later prints nothing")
            tail.send_signal(signal.SIGTERM)
            check(tail.wait() == 0, f"{words}: the tail ends")
            tail.stdout.close()


def stored(path, command, key, value, exptime=0):
    return ask(path, f"{command} {key} 0 {exptime} {len(value)}\r\n".encode() + value)


def sealed(text):
    return (text + f" *{zlib.crc32(text.encode()):08x}\n").encode()


def other_languages(directory):
    """Reads and writes a log as mcds-layout(7) tells it, without mcds."""
    with World(1, "-m", "64") as servers:
        path, = servers.paths
        texts = ["plain", 'quoted "\u00fc"', "two\nlines"]
        for text in texts:
            check(servers.run("eventlog", "put", "x", text).returncode == 0, "put failed")
        now = int(time.time())
        read = []
        for chunk in (now // 60 - 1, now // 60):
            lines = (item(path, f"eventlog:x:60x60:{chunk}") or b"").decode().split("\n")
            for line in lines[1:-1]:
                body, checksum = line.rsplit(" *", 1)
                check(f"{zlib.crc32(body.encode()):08x}" == checksum, f"wrong checksum: {line}")
                read.append(json.loads(body.split(" ", 1)[1]))
        check(read == texts, f"another language reads {read}")

        chunk = int(time.time()) // 60 - 5
        incarnation = "%016x" % random.getrandbits(64)
        identity = str(uuid.UUID(int=(chunk * 60000 << 80) | (7 << 76) | (2 << 62) | random.getrandbits(62)))
        check(stored(path, "append", f"eventlog:x:60x60:{chunk}", b"") == b"NOT_STORED", "the chunk is there already")
        named = sealed(f"N {chunk} {incarnation} {int(time.time())}")
        directory_key = f"eventlog:x:60x60:dir:{chunk // 32}"
        if stored(path, "append", directory_key, named) != b"STORED":
            stored(path, "add", directory_key, named, 7200)
        part = sealed(f"E1 {chunk} {incarnation}") + sealed(f'{identity} "from elsewhere"')
        check(stored(path, "add", f"eventlog:x:60x60:{chunk}", part, 4000) == b"STORED", "add failed")
        done = servers.run("eventlog", "fetch", "x", "-o", "value")
        check(done.stdout.decode().split("\n")[0] == "from elsewhere" and done.stderr == b"", f"not read by mcds: {done}")


def larger_than_memory(directory):
    """What was put into one chunk is read, also where it is more than is held at a time."""
    with World(1, "-m", "400") as servers:
        lines = b"".join(b"%07d %s\n" % (i, b"x" * 3000) for i in range(48000))
        ring = ("--chunk", "1d")
        done = servers.run("eventlog", "put", "big", "-", *ring, input=lines)
        check(done.returncode == 0, f"put: {done}")
        done = servers.run("eventlog", "fetch", "big", "-o", "value")
        check(done.returncode == 0 and done.stdout == lines, f"{len(lines)} bytes of one chunk: {len(done.stdout)}, {done.stderr}")
        cursor = ("--cursor", os.path.join(directory, "cursor"), "-o", "value")
        parts = [servers.run("eventlog", "fetch", "big", *cursor, *limit).stdout for limit in (["--limit", "40000"], [], [])]
        check(b"".join(parts) == lines and not parts[2], f"by a cursor: {[len(part) for part in parts]}")
        info = json.loads(servers.run("eventlog", "info", "big").stdout)
        check((info["events"], info["chunks_used"]) == (48000, 1), f"info: {info}")
        day = int(uuid.UUID(json.loads(servers.run("eventlog", "fetch", "big", "--limit", "1").stdout)["id"]).hex[:12], 16) // 86400000
        done = servers.run("item", "remove", f"eventlog:big:86400x60:{day}.40")
        check(done.returncode == 0, f"a part is removed: {done}")
        done = servers.run("eventlog", "fetch", "big")
        gaps = [line for line in done.stdout.splitlines() if b'"gap"' in line]
        left = done.stdout.count(b'"id"')
        check(len(gaps) == 1 and 46000 < left < 48000, f"a lost part: {gaps}, {left} events")


def main():
    print(f"seed {SEED}")
    choice = random.Random(SEED)
    for test in (lambda d: killed_readers(d, choice), lambda d: failing_consumers(d, choice), overlapping_runs, ring_turns,
                 lambda d: killed_drops(d, choice), tail_over_restarts, tail_before_the_first_event, other_languages,
                 larger_than_memory):
        with tempfile.TemporaryDirectory(prefix="mcds-eventlog-") as directory:
            test(directory)
    finish(20)


if __name__ == "__main__":
    main()
