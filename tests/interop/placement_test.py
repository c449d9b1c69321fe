#!/usr/bin/env python3
"""Real clients write; every key is on the server that `mcds where --as PROFILE` says, and mcds reads it there.

Usage: placement_test.py BUILD_DIR [--all] [--client NAME]… [--profile NAME]… [--sizes] [--verbose]
Without --all only the clients that are quick to install; --sizes: 1000 keys on 3, 5 and 10 equal servers instead of
200 keys on five of each kind. MCDS_TEST_SEED repeats a run's keys and pools.
"""
import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import replace

from clients import CLIENTS
from servers import Asker, Memcacheds

WRITERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "writers")
KEYS = 1000 if "--sizes" in sys.argv else 200
WRITER_TIMEOUT_S = 120


class Finding(Exception):
    pass


def text_keys(choice, client, configuration):
    """Names as applications make them, the shortest, the longest, and such as are no ASCII."""
    longest = client.longest - len(configuration.prefix.encode())
    if configuration.keys == "session ids":
        return [f"{choice.getrandbits(130):x}" for _ in range(KEYS)]
    ascii_only = client.ascii_only and configuration.keys != "any bytes"
    keys = set(choice.sample("abcdefghijklmnopqrstuvwxyz0123456789", 5))
    while len(keys) < KEYS * 4 // 5:
        number = choice.randrange(10 ** choice.randint(1, 9))
        keys.add(choice.choice((f"user:{number}", f"session_{number:x}", f"/page/{number}.html?q=1&r=2", f"{number}",
                                f"key.{number}-{choice.getrandbits(40):x}", f"{{user{number % 20}}}:{number}",
                                f"a/{number}/" + "x" * choice.randint(1, 200))))
    keys.update("k" * (longest - 8) + f"{choice.randrange(10 ** 8):08}" for _ in range(8))
    while len(keys) < KEYS:
        number = choice.randrange(10 ** 6)
        keys.add(f"ascii{number}" if ascii_only else
                 choice.choice((f"ключ:{number}", f"naïve-{number}", f"鍵{number}", f"smile\U0001f600{number}", f"ÿ{number}þ")))
    return sorted(keys | set(client.rewritten))


class Pools:
    def __init__(self, memcacheds, choice):
        on_ports = [memcacheds.on_kernel_port() for _ in range(5)]
        on_default = [memcacheds.on_default_port() for _ in range(2)]
        sockets = [memcacheds.on_socket() for _ in range(5)]
        choice.shuffle(on_ports)
        weights = choice.sample((1, 2, 3, 1, 5), 5)
        self.plain = on_ports
        self.weighted = [replace(server, weight=weight) for server, weight in zip(on_ports, weights)]
        self.mixed = [on_default[0], on_ports[0], replace(on_ports[1], host="localhost", connects_to="127.0.0.1"), on_default[1],
                      on_ports[2]]
        self.mixed_weighted = [replace(server, weight=weight) for server, weight in zip(self.mixed, weights[::-1])]
        self.sockets = sockets
        self.named = [replace(server, name=f"node{i}") for i, server in enumerate(self.weighted)]

        self.sizes = [on_ports[:3], on_ports, on_ports + [memcacheds.on_kernel_port() for _ in range(5)]] if "--sizes" in sys.argv else []

    def for_client(self, client):
        if self.sizes:
            yield from ((f"{len(servers)} ports", servers) for servers in self.sizes)
            return
        yield "five ports", self.plain
        if client.weights:
            yield "weights", self.weighted
        yield "names, default ports", self.mixed_weighted if client.weights else self.mixed
        if client.names:
            yield "aliases", self.named
        if client.sockets:
            yield "unix sockets", self.sockets


class Bench:
    """What all cases share: mcds, the servers, the programs made for writers."""

    def __init__(self, mcds, directory, choice, memcacheds):
        self.mcds = mcds
        self.directory = directory
        self.choice = choice
        self.memcacheds = memcacheds
        self.pools = Pools(memcacheds, choice)
        self.left_configuration = os.path.join(directory, "configuration")
        self.next_number = choice.randrange(10 ** 6, 10 ** 7)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("MCDS_", "MEMCACHED_", "XDG_"))}
        self.environment.update(PATH="/usr/bin:/bin:" + os.environ["PATH"], LC_ALL="C.UTF-8", HOME=directory, GOPATH="/usr/share/gocode", GO111MODULE="off",
                                GOCACHE=os.path.join(directory, "go"), GOFLAGS="-p=1", JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1",
                                NODE_PATH=os.path.join(os.path.dirname(mcds), "..", "interop", "node_modules"))

    def run(self, command, keys=None, cwd=None, codes=(0,)):
        done = subprocess.run(command, cwd=cwd, input=None if keys is None else "\n".join(keys).encode() + b"\n",
                              stdin=subprocess.DEVNULL if keys is None else None, env=self.environment, capture_output=True,
                              timeout=WRITER_TIMEOUT_S, check=False)
        if done.returncode not in codes:
            raise Finding(f"{' '.join(command[:8])} ended with {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-600:]}")
        return done.stdout.decode()

    def words(self, words):
        return [word.replace("{out}", self.directory) for word in words]

    def offered(self):
        lines = map(json.loads, self.run([self.mcds, "where", "--profiles"]).splitlines())
        return {line["profile"] for line in lines if "alias" not in line}


def disagreement(what, profile, keys, expected, found):
    wrong = [i for i in range(len(keys)) if expected[i] != found[i]]
    if wrong:
        first = wrong[0]
        raise Finding(f"{profile}: {what}: {len(wrong)} of {len(keys)} keys disagree, first {keys[first]!r}: "
                      f"mcds says {expected[first]}, found {found[first]}")


def places(servers, wire_keys, values):
    """For each key the servers that hold the value written for it."""
    found = [[] for _ in wire_keys]
    for server in servers:
        asker = Asker(server)
        held = asker.get([key.encode() for key in wire_keys])
        asker.close()
        for i, key in enumerate(wire_keys):
            if held.get(key.encode()) == values[i].encode():
                found[i].append(server.for_mcds().split("=")[-1].split("/?")[0])
    return [sorted(servers) for servers in found]


def as_profile(configuration, servers):
    return ["-s", ",".join(server.for_mcds() for server in servers), "--as", configuration.profile,
            *(["-n", configuration.prefix] if configuration.prefix else [])]


def read_by_mcds(bench, client, configuration, servers, keys, values):
    """`mcds counter get --key` finds the numbers: told the servers and the profile, or where both are kept. `mcds item get` also
    those that have another name there."""
    if client.rewritten:
        read = bench.run([bench.mcds, *as_profile(configuration, servers), "-o", "value", "item", "get", "--", *keys])
        disagreement("item get", configuration.profile, keys, values, read.split())
        return
    read = bench.run([bench.mcds, *as_profile(configuration, servers), "-o", "value", "counter", "get", "--key", "--", *keys])
    disagreement("counter get", configuration.profile, keys, values, read.split())
    if configuration.kept_in:
        source = f"{configuration.kept_in}:{bench.left_configuration}"
        wire_keys = [configuration.prefix + key for key in keys]
        read = bench.run([bench.mcds, "--servers-from", source, "-o", "value", "counter", "get", "--key", "--", *wire_keys])
        disagreement(f"--servers-from {configuration.kept_in}", configuration.profile, keys, values, read.split())


def written_and_found(bench, client, configuration, servers):
    keys = text_keys(bench.choice, client, configuration)
    values = [str(bench.next_number + i) for i in range(len(keys))]
    bench.next_number += len(keys)
    bench.environment["MCDS_PASSWORD"] = client.password
    bench.environment["MCDS_USER"] = "app" if client.password else ""
    answers = [json.loads(line) for line in bench.run([bench.mcds, *as_profile(configuration, servers), "where", "-"], keys).splitlines()]
    wire_keys = [answer.get("wire_key", configuration.prefix + key) for answer, key in zip(answers, keys)]
    expected = [sorted(answer.get("servers", [answer["server"]])) for answer in answers]
    if client.reads:
        return read_and_found(bench, client, configuration, servers, keys, [place for place, in expected])
    extra = [f"config={bench.left_configuration}"] if configuration.kept_in else []
    bench.run([*bench.words(client.writer), " ".join(server.for_writer() for server in servers), *configuration.options, *extra],
              [f"{key}\t{value}" for key, value in zip(keys, values)], WRITERS)
    disagreement("where", configuration.profile, keys, expected, places(servers, wire_keys, values))
    read_by_mcds(bench, client, configuration, servers, keys, values)
    return len(keys)


def read_and_found(bench, client, configuration, servers, keys, expected):
    """Every server holds a number of its own under each key: the answer tells which one was asked."""
    numbers = {server.for_mcds().split("/?")[0]: str(bench.next_number + i) for i, server in enumerate(servers)}
    bench.next_number += len(servers)
    for server in servers:
        asker = Asker(server)
        for key in keys:
            asker.store(key.encode(), numbers[server.for_mcds().split("/?")[0]].encode())
        asker.close()
    printed = bench.run([*bench.words(client.writer), " ".join(server.for_writer() for server in servers), *configuration.options],
                        [f"{key}\t0" for key in keys], WRITERS)
    answers = dict(line.split("\t") for line in printed.splitlines())
    values = [answers.get(key) for key in keys]
    disagreement("where", configuration.profile, keys, [numbers[place] for place in expected], values)
    read_by_mcds(bench, client, configuration, servers, keys, values)
    return len(keys)


def test_client(bench, client, wanted, offered, verbose):
    """Yields for each case its name, the number of keys and what went wrong, or None."""
    try:
        for command in client.build:
            bench.run(bench.words(command), cwd=WRITERS)
    except (Finding, OSError) as error:
        yield client.name, 0, str(error)
        return
    for configuration in client.configurations:
        if wanted and configuration.profile not in wanted:
            continue
        if configuration.profile.split(":")[0] not in offered:
            yield configuration.profile, 0, "mcds does not offer this profile"
            continue
        for pool, servers in bench.pools.for_client(client):
            case = f"{configuration.profile} on {pool}"
            begun = time.monotonic()
            try:
                keys, wrong = written_and_found(bench, client, configuration, servers), None
            except (Finding, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
                keys, wrong = 0, f"{pool}: {error}"
            if verbose:
                print(f"{case}: {time.monotonic() - begun:.2f} s", flush=True)
            yield case, keys, wrong


def version_of(client):
    if "@" in client.package:
        return client.package.split("@")[1]
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", client.package], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else "not installed"


@contextlib.contextmanager
def opened_bench(build):
    """A bench with servers of its own, which chooses as MCDS_TEST_SEED says."""
    seed = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))
    print(f"seed {seed}")
    mcds = os.path.join(os.path.abspath(build), "tools", "mcds")
    with tempfile.TemporaryDirectory(prefix="mcds-interop-") as directory, Memcacheds(directory) as memcacheds:
        yield Bench(mcds, directory, random.Random(seed), memcacheds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--client", action="append", default=[])
    parser.add_argument("--profile", action="append", default=[])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--sizes", action="store_true")
    options = parser.parse_args()
    passed = 0
    failures = []
    with opened_bench(options.build) as bench:
        offered = bench.offered()
        for client in CLIENTS:
            if not (client.name in options.client if options.client else options.all or client.ci):
                continue
            begun = time.monotonic()
            right, wrong, keys = 0, [], 0
            for case, count, finding in test_client(bench, client, options.profile, offered, options.verbose):
                keys += count
                if finding is None:
                    right += 1
                else:
                    wrong.append(f"{case}: {finding}")
            print(f"{client.name:24} {version_of(client):24} {right:4} of {right + len(wrong):4} cases, {keys:7} keys, "
                  f"{time.monotonic() - begun:6.1f} s", flush=True)
            for line in wrong:
                print(f"  {line}", flush=True)
            passed += right
            failures += wrong
    print(f"{passed} passed, {len(failures)} failed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
