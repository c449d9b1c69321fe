#!/usr/bin/env python3
"""Real clients write; `mcds where --guess` names each of them from the keys that lie on the servers.

Usage: guess_test.py BUILD_DIR [--all]
Without --all only the clients that are quick to install. MCDS_TEST_SEED repeats a run's keys and pools.
"""
import json
import os
import subprocess
import sys

from clients import CLIENTS
from placement_test import WRITERS, Finding, opened_bench, text_keys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish


def cases():
    """Of each client what it does without being told otherwise, and one more."""
    for client in CLIENTS:
        if not client.reads and (client.ci or "--all" in sys.argv):
            for configuration in client.configurations[:2]:
                yield client, configuration


def empty(servers):
    for server in servers:
        with server.connect() as connection:
            connection.sendall(b"flush_all\r\n")
            connection.recv(100)


def guess(bench, client, configuration, servers):
    # Of a key under another name nobody can tell what the client hashed.
    keys = [key for key in text_keys(bench.choice, client, configuration) if key not in client.rewritten]
    empty(servers)
    for command in client.build:
        bench.run(bench.words(command), cwd=WRITERS)
    extra = [f"config={bench.left_configuration}"] if configuration.kept_in else []
    bench.run([*bench.words(client.writer), " ".join(server.for_writer() for server in servers), *configuration.options, *extra],
              [f"{key}\t1" for key in keys], WRITERS)
    pool = ",".join(server.for_mcds() for server in servers)
    prefix = ["-n", configuration.prefix] if configuration.prefix else []
    # Exit 1: some profile differs from these keys' only in so rare a case that they do not tell.
    asked = subprocess.run([bench.mcds, "-s", pool, *prefix, "where", "--guess"], env=bench.environment, capture_output=True, text=True,
                           timeout=60, check=False, stdin=subprocess.DEVNULL)
    if asked.returncode not in (0, 1):
        raise Finding(f"{configuration.profile}: ended with {asked.returncode}: {asked.stderr}")
    best = json.loads(asked.stdout.splitlines()[0])
    known = [best["profile"], *best["also"]]
    if configuration.profile not in known or best["explained"] != len(keys):
        raise Finding(f"{configuration.profile}: guessed {known}, {best['explained']} of {best['keys']} keys explained")


def main():
    with opened_bench(sys.argv[1]) as bench:
        for client, configuration in cases():
            try:
                guess(bench, client, configuration, bench.pools.plain)
                check(True, "")
            except (Finding, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                check(False, f"{configuration.profile}: {error}")
    finish()


main()
