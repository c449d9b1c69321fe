#!/usr/bin/env python3
"""PHP's session handlers write; mcds names every server that holds a session, and pruning loses none of them.

Usage: sessions_test.py BUILD_DIR [--all]
Without --all only pools of three servers.
"""
import json
import os
import subprocess
import sys

from placement_test import WRITERS, Finding, opened_bench
from servers import Asker, empty

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

SESSIONS = 60
MEMCACHED = ("memcached", "127.0.0.1:{port}:{weight}", "memc.sess.key.")
MEMCACHE = ("memcache", "tcp://127.0.0.1:{port}?weight={weight}", "")
CASES = (
    (MEMCACHED, {}),
    (MEMCACHED, {"memcached.sess_number_of_replicas": 1}),
    (MEMCACHED, {"memcached.sess_number_of_replicas": 2, "memcached.sess_consistent_hash_type": "ketama_weighted"}),
    (MEMCACHED, {"memcached.sess_number_of_replicas": 1, "memcached.sess_consistent_hash": 0}),
    (MEMCACHED, {"memcached.sess_number_of_replicas": 1, "memcached.sess_binary_protocol": 0}),
    (MEMCACHED, {"memcached.sess_number_of_replicas": 20}),
    (MEMCACHE, {}),
    (MEMCACHE, {"memcache.session_redundancy": 1}),
    (MEMCACHE, {"memcache.session_redundancy": 3, "memcache.hash_function": "fnv"}),
    (MEMCACHE, {"memcache.session_redundancy": 20}),
    (MEMCACHE, {"memcache.hash_strategy": "standard"}),
    (MEMCACHE, {"memcache.hash_strategy": "Standard", "memcache.hash_function": "FNV"}),
    (MEMCACHE, {"memcache.session_prefix_static_key": "app_"}),
)


class Sessions:
    def __init__(self, bench, handler, settings, servers):
        self.bench = bench
        self.servers = servers
        name, entry, prefix = handler
        self.prefix = settings.get("memcache.session_prefix_static_key", prefix)
        self.ids = [f"{bench.choice.getrandbits(100):x}" for _ in range(SESSIONS)]
        self.folder = os.path.join(bench.directory, "php")
        os.makedirs(self.folder, exist_ok=True)
        path = ",".join(entry.format(port=server.port, weight=server.weight) for server in servers)
        lines = {"session.save_handler": name, "session.save_path": f'"{path}"', **settings}
        self.ini = os.path.join(self.folder, "sessions.ini")
        with open(self.ini, "w", encoding="utf-8") as file:
            file.writelines(f"{setting} = {value}\n" for setting, value in lines.items())

    def php(self, verb):
        done = subprocess.run(["php", os.path.join(WRITERS, "session.php"), verb], input="\n".join(self.ids), text=True,
                              env={**self.bench.environment, "PHP_INI_SCAN_DIR": ":" + self.folder}, capture_output=True,
                              timeout=60, check=False)
        if done.returncode != 0 or done.stderr or done.stdout.strip() != str(SESSIONS):
            raise Finding(f"{verb}: {done.returncode}: {done.stdout.strip()[:300]} of {SESSIONS} {done.stderr[:300]}")

    def mcds(self, *words, keys=None):
        return self.bench.run([self.bench.mcds, "--servers-from", "php-ini:" + self.ini, "--timeout", "10s", "where", *words], keys)

    def holders(self, key):
        found = set()
        for server in self.servers:
            asker = Asker(server)
            if asker.get([key.encode()]):
                found.add(f"127.0.0.1:{server.port}")
            asker.close()
        return found

    def run(self):
        self.php("write")
        keys = [self.prefix + identity for identity in self.ids]
        for line in self.mcds("-", keys=keys).splitlines():
            answer = json.loads(line)
            named = set(answer.get("servers", [answer["server"]]))
            if named != self.holders(answer["key"]):
                raise Finding(f"{answer['key']}: mcds says {named}, found {self.holders(answer['key'])}")
        self.mcds("--prune", "--live", "-y")
        self.php("read")


def main():
    with opened_bench(sys.argv[1]) as bench:
        servers = [bench.memcacheds.on_kernel_port() for _ in range(10 if "--all" in sys.argv else 3)]
        for size in (3, 5, 10) if "--all" in sys.argv else (3,):
            for handler, settings in CASES:
                empty(servers)
                try:
                    Sessions(bench, handler, settings, servers[:size]).run()
                    check(True, "")
                except (Finding, subprocess.TimeoutExpired) as error:
                    check(False, f"{handler[0]} {settings} on {size} servers: {error}")
    finish()


if __name__ == "__main__":
    main()
