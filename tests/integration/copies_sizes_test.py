#!/usr/bin/env python3
"""What has outgrown one item, touched with another number of copies than it is kept in: byte for byte the same afterwards.

Usage: copies_sizes_test.py BUILD_DIR

With MCDS_TEST_FULL tables and hashes of 400 000 elements,
written in 1, 2 and 3 copies, each touched with both other numbers by every verb, each verb right or refused. Otherwise smaller ones,
and fewer numbers.
"""
import hashlib
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from copies_verbs import VERBS
from real_servers import connected, dumped, start_memcached

DEADLINE_S = 600
KEYS_AT_ONCE = 100
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
PAIRS = [(kept, other) for kept in (1, 2, 3) for other in (1, 2, 3) if kept != other] if FULL else [(1, 2), (2, 1), (2, 3)]


class Servers:
    def __init__(self, directory, options=()):
        self.paths = [os.path.join(directory, name) for name in "abcd"]
        self.processes = [start_memcached(path, "-m", "1024", *options) for path in self.paths]
        self.names = ",".join(f"{name}=unix:{path}" for name, path in zip("abcd", self.paths))

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def digest(self):
        """Of every item of every server, flags and value, and how many there are."""
        lines = []
        for number, path in enumerate(self.paths):
            with connected(path) as file:
                keys = sorted(set(dumped(file, by="hash")))
                for start in range(0, len(keys), KEYS_AT_ONCE):
                    lines += [(number, key, *rest) for key, *rest in values(file, keys[start:start + KEYS_AT_ONCE])]
        return len(lines), hashlib.sha256(repr(sorted(lines)).encode()).hexdigest()


def values(file, keys):
    file.write(b"get " + b" ".join(keys) + b"\r\n")
    file.flush()
    found = []
    while (line := file.readline().rstrip()) != b"END":
        _, key, flags, size = line.split()
        value = file.read(int(size) + 2)
        found.append((key, flags, hashlib.sha256(value).digest()))
    return found


def run(servers, copies, *arguments, given=None):
    done = subprocess.run([mcds, "-s", servers.names, "--copies", str(copies), *arguments], input=given, capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def numbered(count):
    return "".join(f"line {number} \n" for number in range(count))


# What is written from standard input, and how it is read.
SIZES = {
    "table": (["table", "add", "N", "-"], ["table", "fetch", "N"], numbered(400000 if FULL else 20000)),
    "hash": (["hash", "set", "N", "-"], ["hash", "fetch", "N"],
             "".join(f"field{number}\tvalue{number}\n" for number in range(400000 if FULL else 5000))),
}


def read(servers, copies, words):
    status, told, error = run(servers, copies, "-o", "value", *words)
    check(status == 0, f"{words} of {copies} copies: {status} {error}")
    return sorted(told.splitlines())


def check_size(name, kept, others):
    write, fetch, lines = SIZES[name]
    named = lambda words: ["big" if word == "N" else word for word in words]  # noqa: E731
    with tempfile.TemporaryDirectory() as directory:
        servers = Servers(directory)
        try:
            status, _, error = run(servers, kept, *named(write), given=lines)
            check(status == 0, f"{name} in {kept} copies: {status} {error}")
            fetch = named(fetch)
            before_read = read(servers, kept, fetch)
            check(len(before_read) == lines.count("\n"), f"{name} in {kept} copies: {len(before_read)} read of {lines.count(chr(10))}")
            before = servers.digest()
            for other in others:
                for verb in VERBS:
                    if verb[0] != write[0]:
                        continue
                    status, _, error = run(servers, other, *named(verb))
                    right = status == 65 and f"--copies {kept}" in error
                    check(right or verb[1] in ("where", "tail", "info"), f"{verb} of {name} in {kept} copies with {other}: {status} {error}")
                after = servers.digest()
                check(after == before, f"{name} in {kept} copies: changed by verbs with {other}: {before} {after}")
                check(read(servers, kept, fetch) == before_read, f"{name} in {kept} copies reads otherwise after {other}")
        finally:
            servers.end()


def main():
    for name in SIZES:
        for kept in sorted({kept for kept, _ in PAIRS}):
            check_size(name, kept, [other for one, other in PAIRS if one == kept])
    finish()


main()
