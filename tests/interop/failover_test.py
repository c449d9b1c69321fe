#!/usr/bin/env python3
"""Real clients write while servers are dead; every key is where `mcds where --down` says the client goes then.

Usage: failover_test.py BUILD_DIR [--all]
Without --all only the clients that are quick to install. MCDS_TEST_SEED repeats a run's keys and pools.
"""
import os
import subprocess
import sys

from clients import CLIENTS
from placement_test import WRITERS, Finding, as_profile, disagreement, opened_bench, places, text_keys
from servers import Asker

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

# What makes a client fail over, beside its profile's options.
PROFILES = {"python-memcached": (), "perl-cache-memcached": (), "dalli": (), "php-memcache-default": (),
            "php-memcache-standard-crc32": (), "php-memcache-consistent-fnv": (),
            "apr-memcache": (), "apr-memcache-crc32": (), "spymemcached-default": (), "spymemcached-ketama": (),
            "nginx-hash": (), "nginx-hash-consistent": ()}
LEARNING = 60  # keys at the beginning, by which the client learns who is dead


def cases():
    for client in CLIENTS:
        for configuration in client.configurations:
            if configuration.profile in PROFILES and (client.ci or "--all" in sys.argv):
                yield client, configuration


def where_to(bench, configuration, servers, dead, keys):
    """The keys that have a place, and these: a client that tries some servers and gives up may meet the dead ones alone."""
    down = ",".join(server.for_mcds() for server in dead)
    words = [bench.mcds, *as_profile(configuration, servers), "-o", "value", "where", "--down", down, "-"]
    then = bench.run(words, keys, codes=(0, 1)).splitlines()
    if len(then) != len(keys):
        raise Finding(f"{len(then)} answers for {len(keys)} keys")
    return zip(*((key, place) for key, place in zip(keys, then) if place != "-"))


def written_and_found(bench, client, configuration, servers, dead):
    keys = text_keys(bench.choice, client, configuration)
    bench.choice.shuffle(keys)
    keys, expected = where_to(bench, configuration, servers, dead, keys)
    values = [str(bench.next_number + i) for i in range(len(keys))]
    bench.next_number += len(keys)
    alive = [server for server in servers if server not in dead]
    for command in client.build:
        bench.run(bench.words(command), cwd=WRITERS)
    if client.reads:
        # Every server holds its own address under each key: the answer tells which one was asked.
        for server in alive:
            asker = Asker(server)
            for key in keys:
                asker.store(key.encode(), server.for_mcds().encode())
            asker.close()
    printed = bench.run([*bench.words(client.writer), " ".join(server.for_writer() for server in servers), *configuration.options,
                         *PROFILES[configuration.profile]], [f"{key}\t{value}" for key, value in zip(keys, values)], WRITERS)
    if client.reads:
        answers = dict(line.split("\t") for line in printed.splitlines())
        return disagreement("where --down", configuration.profile, keys, expected, [answers[key] for key in keys])
    wire_keys = [configuration.prefix + key for key in keys]
    found = places(alive, wire_keys, values)
    return disagreement("where --down", configuration.profile, keys[LEARNING:], [[place] for place in expected[LEARNING:]], found[LEARNING:])


def main():
    with opened_bench(sys.argv[1]) as bench:
        servers = bench.pools.plain
        dead = bench.choice.sample(servers, 2)
        for server in dead:
            bench.memcacheds.kill(server)
        bench.environment["DEAD_SERVERS"] = str(len(dead))
        for client, configuration in cases():
            try:
                written_and_found(bench, client, configuration, servers, dead)
                check(True, "")
            except (Finding, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                check(False, str(error))
    finish()


main()
