#!/usr/bin/env python3
"""Two clients in another language share mcds's structures, on three servers and where they place the keys.

The Python reference does what mcds-layout(7) tells through each of them. Usage: layout_test.py BUILD_DIR
"""
import os
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pylibmc
from checks import check, finish
from mixed_test import MODELS, in_turn
from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from servers import Memcacheds
from structures import Mcds, Reference

OPERATIONS = 100
SEED = 26


class ThroughPymemcache:
    profile = "pymemcache-rendezvous"

    def __init__(self, servers):
        self.client = HashClient([(server.host, server.port) for server in servers], default_noreply=False)

    def at(self, key):
        return self.client._get_client(key.decode())  # it would place bytes elsewhere than text


class ThroughPylibmc:
    """pymemcache's words. It does not tell a key's server: parts of another key go where their own bytes put them, as
    those of mcds before 0.2 did, and are asked for everywhere."""
    profile = "pylibmc-ketama-weighted"

    def __init__(self, servers):
        self.all = [Client((server.host, server.port)) for server in servers]
        self.client = pylibmc.Client([f"{server.host}:{server.port}" for server in servers],
                                     behaviors={"ketama_weighted": True, "cas": True})
        self.add, self.replace, self.delete = self.client.add, self.client.replace, self.client.delete

    def at(self, _key):
        return self

    def get(self, key):
        return next((value for value in (client.get(key) for client in self.all) if value is not None), None)

    def get_many(self, keys):
        return {key: value for client in self.all for key, value in client.get_many(keys).items()}

    def gets(self, key):
        return self.client.gets(key)

    def cas(self, key, value, unique, expire=0):
        return self.client.cas(key, value, unique, expire)

    def append(self, key, value):
        try:
            return self.client.append(key, value)
        except pylibmc.NotStored:
            return False

    def incr(self, key, delta):
        return self._or_nothing(self.client.incr, key, delta)

    def decr(self, key, delta):
        return self._or_nothing(self.client.decr, key, delta)

    @staticmethod
    def _or_nothing(ask, key, delta):
        try:
            return ask(key, delta)
        except pylibmc.NotFound:
            return None


def equal(found, expected, what):
    check(found == expected, f"{what}: {found!r}, not {expected!r}")


def caches(mcds, at):
    key = b"cache:report"
    subprocess.run([*mcds.command, "cache", "run", "report", "--ttl", "60s", "--cache-codes", "3", "--", "sh", "-c",
                    'printf "out\n"; printf err >&2; exit 3'], capture_output=True, check=False, timeout=60)
    head, output = at(key).get(key).split(b"\n", 1)
    line, checksum = head.rsplit(b" *", 1)
    words = line.decode().split()
    equal(words[0], "K1", "what a cache entry is")
    equal(f"{zlib.crc32(output, zlib.crc32(line)):08x}", checksum.decode(), "a cache entry's checksum")
    equal(words[6:], ["3", "4", "3"], "exit code and lengths")
    equal(output, b"out\nerr", "a command's output")
    check(int(words[2]) <= int(words[3]) <= time.time() * 1000 < int(words[4]) <= int(words[5]), f"the times {words[2:6]}")
    check(at(key).delete(key), "invalidating")
    equal(mcds.ask("found", "cache", "show", "report"), False, "an entry the client removed is found")


def visitors(mcds, at):
    period = 300
    while period - time.time() % period < 2:
        time.sleep(0.1)
    mcds.run("visitors", "hit", "site")
    key = f"visitors:site:{period}:{int(time.time()) // period}".encode()
    equal(at(key).incr(key, 1), 2, "a hit")
    equal(mcds.ask("current", "visitors", "value", "site"), 2, "hits of both")


def main():
    program = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
    for kind in (ThroughPymemcache, ThroughPylibmc):
        with tempfile.TemporaryDirectory(prefix="mcds-layout-") as directory, Memcacheds(directory) as memcacheds:
            servers = [memcacheds.on_kernel_port() for _ in range(3)]
            client = kind(servers)
            for name in MODELS:
                found = in_turn(name, Mcds(program, servers, f"{name}.", kind.profile), Reference(client.at, f"{name}."), SEED,
                                OPERATIONS)
                check(not found, f"{kind.profile}: " + "\n".join(found))
            mcds = Mcds(program, servers, "", kind.profile)
            caches(mcds, client.at)
            visitors(mcds, client.at)
    finish()


if __name__ == "__main__":
    main()
