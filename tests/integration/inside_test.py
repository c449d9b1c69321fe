#!/usr/bin/env python3
"""What fills the memory: the figures of item list --by-prefix and --histogram, --larger-than and --never-expires are those of what
was stored, on three servers; item hot names stores that were refused, by cause.

Usage: inside_test.py BUILD_DIR
"""
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
import program
from program import MCDS, wait_for
from real_servers import Servers, statistics as statistics_of

ITEMS = 1_000_000 if FULL else 40_000
# Prefix, its share of the items, the sizes of its values, and its ttl in seconds.
KINDS = (("page:", 0.5, (100, 3000), 0), ("session:", 0.3, (40, 60), 600), ("", 0.2, (1, 400), 0))


def run(servers, *words):
    status, lines, error = program.answers(servers, *words)
    check(status == 0, f"{words} ends with {status}: {error}")
    return lines


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")

    def send(self, lines):
        self.file.write(lines)
        self.file.flush()


def item_size(key, value):
    """The header, the cas and the key with its NUL, the value with its end of line: memcached 1.6 on 64 bits, flags of 0."""
    return 48 + 8 + len(key) + 1 + value + 2


def fill(clients):
    random.seed(7)
    stored = []
    batches = [[] for _ in clients]
    for number in range(ITEMS):
        prefix, _, (low, high), ttl = random.choices(KINDS, [kind[1] for kind in KINDS])[0]
        size, key = random.randint(low, high), f"{prefix}k{number}"
        stored.append((prefix, item_size(key, size), ttl == 0))
        batches[number % len(clients)].append(f"set {key} 0 {ttl} {size} noreply\r\n".encode() + b"x" * size + b"\r\n")
        if number % 3000 == 0 or number == ITEMS - 1:
            for client, batch in zip(clients, batches):
                client.send(b"".join(batch) + b"mn\r\n")
                check(client.file.readline() == b"MN\r\n", "not all is stored")
                batch.clear()
    return stored


def close(shown, real):
    return abs(shown - real) <= 0.02 * real + 1


def figures_are_those_of_what_was_stored():
    with Servers(3, "-m", "1024") as servers:
        clients = [Client(path) for path in servers.paths]
        stored = fill(clients)
        by_prefix = {line["prefix"]: line for line in run(servers.list, "item", "list", "--by-prefix")}
        check(set(by_prefix) == {kind[0] for kind in KINDS}, f"prefixes {set(by_prefix)}")
        all_bytes = sum(size for _, size, _ in stored)
        for prefix, line in by_prefix.items():
            sizes = sorted(size for name, size, _ in stored if name == prefix)
            check((line["keys"], line["size_bytes"], line["size_max_bytes"]) == (len(sizes), sum(sizes), sizes[-1]), f"{prefix}: {line}")
            check(abs(line["share"] - sum(sizes) / all_bytes) < 0.0002, f"{prefix}: the share: {line}")
            check(close(line["size_median_bytes"], statistics.median_low(sizes)), f"{prefix}: median {statistics.median(sizes)}: {line}")
            check(close(line["size_p99_bytes"], sizes[(len(sizes) * 99 + 99) // 100 - 1]), f"{prefix}: p99: {line}")
            check(line["never_expires_share"] == (0 if prefix == "session:" else 1), f"{prefix}: {line}")
            check(0 <= line["idle_median_s"] < 300, f"{prefix}: idle: {line}")
        # Each class holds what the servers say that it holds.
        classes = run(servers.list, "item", "list", "--histogram")
        chunks = {}
        for path in servers.paths:
            slabs = statistics_of(path, "slabs")
            for name, value in slabs.items():
                number, _, about = name.partition(":")
                if about in ("used_chunks", "free_chunks"):
                    size = int(slabs[f"{number}:chunk_size"])
                    used, free = chunks.get(size, (0, 0))
                    chunks[size] = (used + int(value), free) if about == "used_chunks" else (used, free + int(value) * size)
        found = {line["chunk_bytes"]: line for line in classes}
        for size, (used, free) in chunks.items():
            line = found.get(size, {"keys": 0, "free_bytes": 0})
            check((line["keys"], line["free_bytes"]) == (used, free), f"chunks of {size}: {used} used, {free} free: {line}")
            fitting = [item for _, item, _ in stored if item <= size and not any(item <= other < size for other in chunks)]
            check(len(fitting) == line["keys"], f"chunks of {size} have {len(fitting)} items: {line}")
            if fitting:
                wasted = size * len(fitting) - sum(fitting)
                check(line["wasted_bytes"] == wasted, f"chunks of {size} waste {wasted}: {line}")
                check(abs(line["wasted_share"] - wasted / size / len(fitting)) < 0.0002, f"chunks of {size}: {line}")
        check(sum(line["keys"] for line in classes) == ITEMS, "the classes do not have all items")
        if ITEMS <= 50_000:
            large = run(servers.list, "item", "list", "--larger-than", "2k")
            check(len(large) == sum(size > 2048 for _, size, _ in stored), f"--larger-than 2k lists {len(large)}")
            check(all(line["size_bytes"] > 2048 for line in large), "--larger-than lists a smaller one")
            kept = run(servers.list, "item", "list", "--never-expires")
            check(len(kept) == sum(never for _, _, never in stored), f"--never-expires lists {len(kept)}")
            check(not any(line["expires"] for line in kept), "--never-expires lists one with a ttl")
        run(servers.list, "item", "set", "huge", "x" * 100_000)
        send = b"set huge 0 0 700000\r\n" + b"x" * 700_000 + b"\r\n"
        clients[0].send(send)
        check(clients[0].file.readline() == b"STORED\r\n", "an item of several chunks is stored")
        last = run(servers.list, "item", "list", "--histogram")[-1]
        check((last["chunk_bytes"], last["keys"], last["wasted_bytes"]) == (None, 1, None), f"an item of several chunks: {last}")
        text = program.run(servers.list, "item", "list", "--by-prefix", "-o", "text", env=program.environment(COLUMNS="200")).stdout
        check("█" in text, f"no bars: {text}")


def refused_stores_are_named(flags, size, cause):
    with Servers(1, *flags) as servers:
        client = Client(servers.paths[0])
        if cause == "no_memory":  # -M: what does not fit is refused
            number = 0
            while True:
                client.send(f"set fill{number} 0 0 500000\r\n".encode() + b"x" * 500_000 + b"\r\n")
                if client.file.readline() != b"STORED\r\n":
                    break
                number += 1
        watch = subprocess.Popen([MCDS, "-s", servers.list, "item", "hot", "--for", "5s", "--sort", "refused"], stdout=subprocess.PIPE,
                                 text=True)
        if "log_watchers" not in statistics_of(servers.paths[0]):  # before 1.6
            time.sleep(1)
        wait_for(lambda: statistics_of(servers.paths[0]).get("log_watchers") != "0", "item hot watches")
        for _ in range(5):
            client.send(f"set big 0 0 {size}\r\n".encode() + b"x" * size + b"\r\n")
            check(b"SERVER_ERROR" in client.file.readline(), "a store is not refused")
        client.send(b"get big\r\nset small 0 0 1\r\nx\r\n")
        check(client.file.readline() == b"END\r\n", "big is there")
        client.file.readline()
        out = [json.loads(line) for line in watch.communicate()[0].splitlines()]
        key = out[0]
        check(key["key"] == "big" and key.get("refused") == {cause: 5}, f"{cause}: {key}")
        check(key["refused_per_s"] > 0 and key["stores_per_s"] == 0, f"{cause}: a refused store is no store: {key}")
        check(key["gets_per_s"] == key["misses_per_s"] and abs(key["gets_per_s"] - 1 / out[-1]["watched_s"]) < 0.06, f"{cause}: one read, one miss: {out}")
        check(key["size_bytes"] in (0, None), f"{cause}: the size of what is not there: {key}")
        check("small" not in [line.get("key") for line in out], f"{cause}: --sort refused lists a key that was stored")
        check(out[-1].get("refused") == {cause: 5} and out[-1]["server"], f"{cause}: of the server: {out[-1]}")


figures_are_those_of_what_was_stored()
refused_stores_are_named((), 2_000_000, "too_large")
refused_stores_are_named(("-M", "-m", "8"), 500_000, "no_memory")
finish()
