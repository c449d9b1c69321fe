#!/usr/bin/env python3
"""Real dalli writes, `mcds ring move` brings everything to where another client looks, on more servers, and that client, a real one too, reads
everything, also once the old copies are removed.

Usage: move_test.py BUILD_DIR [--all]
Without --all only clients that are quick to install. MCDS_TEST_SEED repeats a run's keys.
"""
import json
import os
import subprocess
import sys

import pylibmc
from clients import CLIENTS
from placement_test import WRITERS, Finding, opened_bench
from pymemcache.client.hash import HashClient

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish

KEYS = 2000


def by_pymemcache(_, servers, keys):
    client = HashClient([(server.host, server.port) for server in servers])
    return {key: value.decode() for key in keys if (value := client.get(key)) is not None}


def by_pylibmc(_, servers, keys):
    client = pylibmc.Client([f"{server.host}:{server.port}" for server in servers], behaviors={"ketama_weighted": True})
    return {key: value.decode() for key in keys if (value := client.get(key)) is not None}


def by_gomemcache(bench, servers, keys):
    program = os.path.join(bench.directory, "gomemcache_read")
    if not os.path.exists(program):
        bench.run(["go", "build", "-o", program, "gomemcache_read.go"], cwd=WRITERS)
    found = bench.run([program, " ".join(server.for_writer() for server in servers)], keys)
    return dict(line.split("\t") for line in found.splitlines())


READERS = {"pymemcache-rendezvous": by_pymemcache, "pylibmc-ketama-weighted": by_pylibmc}
SLOW_READERS = {"gomemcache": by_gomemcache}


def list_of(servers):
    return ",".join(server.for_mcds() for server in servers)


def moved_and_read(bench, profile, read):
    old = [bench.memcacheds.on_kernel_port() for _ in range(3)]
    new = [*old[1:], bench.memcacheds.on_kernel_port(), bench.memcacheds.on_kernel_port()]
    values = {f"user:{bench.choice.getrandbits(40):x}" + "x" * bench.choice.randint(0, 180): f"value {number}" for number in range(KEYS)}
    dalli = next(client for client in CLIENTS if client.name == "dalli")
    bench.run([*dalli.writer, " ".join(server.for_writer() for server in old)], [f"{key}\t{value}" for key, value in values.items()], cwd=WRITERS)
    before = read(bench, new, list(values))
    check(len(before) < KEYS * 3 // 4, f"{profile} finds {len(before)} of {KEYS} keys before the move")
    lines = bench.run([bench.mcds, "-s", list_of(old), "--as", "dalli", "ring", "move", "--to", list_of(new), "--as-to", profile])
    summary = json.loads(lines.splitlines()[-1])
    check(summary["left"] == 0 and summary["astray"] == 0, f"{profile}: {summary}")
    check(summary["copied"] + len(before) >= KEYS, f"{profile}: {summary} and {len(before)} before")
    check(read(bench, new, list(values)) == values, f"{profile} does not find everything after the move")
    bench.run([bench.mcds, "-s", list_of(new), "--as", profile, "where", "--prune", "--live", "--moved-from", list_of(old), "--as-from", "dalli",
               "--yes"])
    check(read(bench, new, list(values)) == values, f"{profile} does not find everything after the prune")
    audit = bench.run([bench.mcds, "-s", list_of(new), "--as", profile, "where", "--probe", "--live"])
    check(json.loads(audit)["verdicts"] == {"ok": KEYS}, f"{profile}: {audit}")


def main():
    with opened_bench(sys.argv[1]) as bench:
        for profile, read in (READERS | SLOW_READERS if "--all" in sys.argv else READERS).items():
            try:
                moved_and_read(bench, profile, read)
            except (Finding, subprocess.TimeoutExpired) as error:
                check(False, f"{profile}: {error}")
    finish()


if __name__ == "__main__":
    main()
