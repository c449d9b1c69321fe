#!/usr/bin/env python3
"""Real clients write; `mcds where --guess` names each of them from the keys that lie on the servers.

Usage: guess_test.py BUILD_DIR [--all]
Without --all only the clients that are quick to install. MCDS_TEST_SEED repeats a run's keys and pools.
"""
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace

from clients import CLIENTS, PREFIX
from placement_test import WRITERS, Finding, opened_bench, text_keys
from servers import empty

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish


def cases():
    """Of each client what it does without being told otherwise, and one more."""
    for client in CLIENTS:
        if not client.reads and (client.ci or "--all" in sys.argv):
            for configuration in client.configurations[:2]:
                yield client, configuration


def write(bench, client, configuration, servers, keys):
    for command in client.build:
        bench.run(bench.words(command), cwd=WRITERS)
    extra = [f"config={bench.left_configuration}"] if configuration.kept_in else []
    bench.run([*bench.words(client.writer), " ".join(server.for_writer() for server in servers), *configuration.options, *extra],
              [f"{key}\t1" for key in keys], WRITERS)


def asked(bench, servers, *options):
    """The answers and whether they are certain."""
    pool = ",".join(server.for_mcds() for server in servers)
    done = subprocess.run([bench.mcds, "-s", pool, *options], env=bench.environment, capture_output=True, text=True,
                          timeout=60, check=False, stdin=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise Finding(f"ended with {done.returncode}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode == 0


def guess(bench, client, configuration, servers):
    # Of a key under another name nobody can tell what the client hashed.
    keys = [key for key in text_keys(bench.choice, client, configuration) if key not in client.rewritten]
    empty(servers)
    write(bench, client, configuration, servers, keys)
    prefix = ["-n", configuration.prefix] if configuration.prefix else []
    # Not certain: some profile differs from these keys' only in so rare a case that they do not tell.
    best = asked(bench, servers, *prefix, "where", "--guess")[0][0]
    known = [best["profile"], *best["also"]]
    if configuration.profile not in known or best["explained"] != len(keys):
        raise Finding(f"{configuration.profile}: guessed {known}, {best['explained']} of {best['keys']} keys explained, "
                      f"{len(keys)} written")


def renamed(configuration, prefix):
    """The same client under another prefix."""
    options = tuple(option.replace(configuration.prefix, prefix) for option in configuration.options)
    return replace(configuration, options=options, prefix=prefix)


class RandomPools:
    """Pools of one client or two, of one under two prefixes, of a list in another order: what is certain is never wrong."""

    def __init__(self, bench):
        self.bench = bench
        # Without parameters: those are no names of profiles.
        self.writers = [(client, configuration) for client in CLIENTS
                        if not client.reads and not client.password and (client.ci or "--all" in sys.argv)
                        for configuration in client.configurations if ":" not in configuration.profile and not configuration.keys]
        self.outcomes = Counter()

    def number(self, kind):
        choice = self.bench.choice
        servers = choice.sample(self.bench.pools.plain, choice.randint(3, 5))
        listed = choice.sample(servers, len(servers)) if kind == "shuffled" else servers
        writers = choice.sample(self.writers, 2 if kind == "two clients" else 1)
        if kind == "two prefixes":
            client, configuration = choice.choice([writer for writer in self.writers if writer[1].prefix == PREFIX])
            writers = [(client, renamed(configuration, prefix)) for prefix in ("staging:", "prod:")]
        empty(servers)
        for i, (client, configuration) in enumerate(writers):
            keys = [f"user:{i}:{choice.getrandbits(40)}" for _ in range(choice.randint(150, 500))]
            write(self.bench, client, configuration, servers, keys)
        answers, certain = asked(self.bench, listed, "where", "--guess")
        first = [answer for answer in answers if "share" in answer] or answers[:1]
        # What is on all servers, any other client explains, too; the copies elsewhere are told apart.
        everywhere = ("node-memcache-broadcast",) if len(writers) > 1 else ()
        named = [configuration.profile in everywhere or any(configuration.profile in (answer["profile"], *answer["also"]) for answer in first)
                 for _, configuration in writers]
        outcome = ("certain" if certain else "all named" if all(named) else "some named" if any(named) else "none named")
        self.outcomes[f"{kind}: {outcome}"] += 1
        truth = ", ".join(configuration.profile for _, configuration in writers)
        if certain and not all(named):
            raise Finding(f"{kind}: certain of {first[0]['profile']} {first[0].get('prefix', '')}, written by {truth}")
        if not all(named) and kind in ("one client", "two prefixes"):
            raise Finding(f"{kind}: guessed {[answer['profile'] for answer in first]}, written by {truth}")


def main():
    with opened_bench(sys.argv[1]) as bench:
        for client, configuration in cases():
            try:
                guess(bench, client, configuration, bench.pools.plain)
                check(True, "")
            except (Finding, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                check(False, f"{configuration.profile}: {error}")
        pools = RandomPools(bench)
        for i in range(40 if "--all" in sys.argv else 12):
            try:
                pools.number(("one client", "two clients", "two prefixes", "shuffled")[i % 4])
                check(True, "")
            except (Finding, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                check(False, f"random pool {i}: {error}")
        print(*(f"{count:3} {outcome}" for outcome, count in sorted(pools.outcomes.items())), sep="\n")
    finish()


main()
