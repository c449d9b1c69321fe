#!/usr/bin/env python3
"""Records of every structure, mutated, and each verb on them: no signal, no undocumented exit code, bounded time and memory.

Usage: mutated_test.py BUILD_DIR; MCDS_TEST_SEED and MCDS_TEST_MUTATIONS (how many for each structure: 120) choose which.
"""
import contextlib
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from hostile import Server, execute, judged, plain_environment, sealed

SEED = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))
COUNT = int(os.environ.get("MCDS_TEST_MUTATIONS", "100" if FULL else "60"))
FILE = "cursor"  # in the directory of the run

# What writes the records, and what is then run on the mutated ones.
STRUCTURES = {
    "lock": (["lock acquire k --ttl 60s --note n", "lock acquire k2 --ttl 60s --fence"],
             ["lock info k", "lock run k -w 0 -- true", "lock acquire k -w 0", "lock release k --force", "lock info k2",
              "lock acquire k2 -w 0 --fence", "lock renew k --token 0123456789abcdef", "lock run k -w 0 --once-per 1h -- true"]),
    "counter": (["counter incr k 41", "counter incr e 3 --exact", "counter limit l --max 3 --per 1h"],
                ["counter get k e l", "counter incr k", "counter incr e --exact", "counter decr k", "counter take k", "counter limit l --max 3 --per 1h",
                 "counter take e"]),
    "counter in copies": (["counter incr k 41 --copies 2", "counter incr e 3 --exact --copies 2"],
                          ["counter get k e --copies 2", "counter incr k --copies 2", "counter incr e --exact --copies 2",
                           "counter take k --copies 2"]),
    "visitors": (["visitors hit k", "visitors hit k --id a", "visitors hit k --id b"],
                 ["visitors value k", "visitors value k --estimate", "visitors value k --current", "visitors hit k --id c", "visitors hit k",
                  "visitors value k --jitter 5%"]),
    "eventlog": (["eventlog put k one", "eventlog put k {\"a\":1} --json", "eventlog put k three", f"eventlog tail k --cursor {FILE}"],
                 ["eventlog fetch k", "eventlog tail k", "eventlog info k", f"eventlog fetch k --cursor {FILE}", "eventlog put k more",
                  "eventlog fetch k --first 1h --last 1m", "eventlog fetch k -o text"]),
    "array": (["array add k a b c", "array change k --add d --remove a", "array add j {\"a\":[1]} --json"],
              ["array fetch k", "array count k", "array add k x", "array change k --remove b", "array drop k", "array fetch j",
               "array replace k z", "array replace k --allow-empty", "array fetch k -o text"]),
    "array as JSON": (["array add k a b --encoding json", "array add k c --encoding json"],
                      ["array fetch k", "array count k", "array add k x --encoding json"]),
    "table": (["table add k a b", "table remove k b", "table add k c"],
              ["table fetch k", "table has k a", "table count k", "table check k", "table add k d", "table remove k a", "table drop k"]),
    "table in copies": (["table add k a b --copies 2", "table remove k b --copies 2"],
                        ["table fetch k --copies 2", "table has k a --copies 2", "table check k --copies 2", "table add k d --copies 2"]),
    "hash": (["hash set k a 1", "hash set k b 2", "hash remove k b"],
             ["hash fetch k", "hash get k a b", "hash fields k", "hash count k", "hash check k", "hash set k c 3", "hash remove k a",
              "hash drop k"]),
    "cache": (["cache run k --ttl 60s -- echo out", "cache run s --ttl 60s --stale 1m -- sh -c exit"],
              ["cache run k --ttl 60s -- true", "cache show k", "cache expire k", "cache run s --wait 10ms -- true", "cache remove k",
               "cache show s"]),
}
NUMBERS = ["0", "-1", "1", "60", "4294967295", "4294967296", "253402300799", "253402300800", "9007199254740992", "9223372036854775807",
           "9223372036854775808", "18446744073709551615", "18446744073709551616", "1e309", "-9223372036854775808", "ffffffffffffffff"]
SPICES = [b"\0", b"\n", b"\r\n", b" ", b"\x1b]52;c;aGk=\x07", b"\xc2\x9b", b"\xff", b'"', b"\\", b"{}", b"[", b"]" * 200, b"[" * 5000,
          b" *", b"*" * 40, b".", b":", b"b\"%%\"", b"NaN", b",\"held\":false", b"#\n", b"J1 ", b"E1 ", b"N ", b"S ", b"="]


def resealed(line):
    """With the checksum that its bytes then have, if it had one."""
    body = re.sub(rb" \*[0-9a-f]{0,8}$", b"", line)
    return line if body == line else sealed(body.decode("latin-1")).encode("latin-1")


def mutated(value, rng):
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        lines = value.split(b"\n")
        which = rng.randrange(len(lines))
        line = lines[which]
        at = rng.randrange(len(line) + 1)
        kind = rng.randrange(9)
        if kind == 0:
            line = line[:at] + bytes([rng.randrange(256)]) + line[at + 1:]
        elif kind == 1:
            line = line[:at] + rng.choice(SPICES) + line[at:]
        elif kind == 2:
            line = line[:at]
        elif kind == 3:
            line = line[:at] + line[at + rng.randrange(1, 9):]
        elif kind in (4, 5):
            numbers = list(re.finditer(rb"-?[0-9]+", line)) if rng.random() < 0.7 else list(re.finditer(rb"[0-9a-f]+", line))
            if numbers:
                one = rng.choice(numbers)
                line = line[:one.start()] + rng.choice(NUMBERS).encode() + line[one.end():]
        elif kind == 6:
            line = b"\n".join([line] * rng.choice((2, 3, 2000)))
        elif kind == 7:
            lines.insert(rng.randrange(len(lines) + 1), line)
        else:
            words = line.split(b" ")
            rng.shuffle(words)
            line = b" ".join(words)
        if rng.random() < 0.8:
            line = b"\n".join(resealed(one) for one in line.split(b"\n"))
        lines[which] = line
        value = b"\n".join(lines)[:1000000]
    return value


def attack(name, servers, directory, rng):
    setup, verbs = STRUCTURES[name]
    cursor = os.path.join(directory, FILE)
    environment = plain_environment(MCDS_SERVERS=",".join(f"s{i}=unix:{server.path}" for i, server in enumerate(servers)), HOME=directory)

    def run(line):
        return execute(line.split(" "), environment, cwd=directory)

    for line in setup:
        done = run(line)
        check(done.status == 0, f"{name}: {line}: {done}")
    stored = {(server, key): server.item(key) for server in servers for key in server.keys()}
    places = sorted((place for place in stored if stored[place] is not None), key=lambda place: (place[0].path, place[1]))
    kept = open(cursor, "rb").read() if os.path.exists(cursor) else None
    for _ in range(COUNT):
        for server in servers:
            server.flush()
        victims = rng.sample(places, rng.choice((1, 1, min(2, len(places)))))
        shown = []
        for place in places:
            flags, value = stored[place]
            if place in victims:
                if rng.random() < 0.05:
                    continue
                flags, value = rng.choice((flags, flags, rng.randrange(1 << 32))), mutated(value, rng)
                shown.append(f"{place[1]}: {flags} {value[:600]!r}")
            place[0].command(f"set {place[1]}", value, flags)
        if kept is not None:
            with open(cursor, "wb") as file:
                file.write(mutated(kept, rng) if rng.random() < 0.3 else kept)
        verb = rng.choice(verbs)
        done = run(verb)
        what = f"{verb} on {'; '.join(shown)}"
        # A record whose checksum is right replays what it says, its exit code too.
        judged(done, what, any_code=name == "cache")
        controls = [c for c in done.out + done.err if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160]
        check(not controls, f"{what}: controls reach the terminal: {done}")
        check(done.err.count("\n") <= 6, f"{what}: too much is said: {done}")


def main():
    print(f"MCDS_TEST_SEED={SEED}")
    rng = random.Random(SEED)
    for name in os.environ.get("MCDS_TEST_STRUCTURES", ",".join(STRUCTURES)).split(","):
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
            attack(name, Server.several(2 if "copies" in name else 1, directory, stack), directory, rng)
    finish(40)


if __name__ == "__main__":
    main()
