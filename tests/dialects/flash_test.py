#!/usr/bin/env python3
"""A real memcached that moves its items to flash (extstore), the smallest too, between any two commands. Usage: flash_test.py BUILD_DIR"""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish  # noqa: E402
import program  # noqa: E402
from real_servers import Servers, statistics  # noqa: E402



def flashed(path):
    """Waits until every item is on flash, or those are that were not used lately."""
    until = time.monotonic() + 2
    while time.monotonic() < until:
        now = statistics(path)
        if now["extstore_objects_used"] == now["curr_items"] != "0":
            return
        time.sleep(0.05)


class Server:
    def __init__(self, path):
        self.path = path

    def run(self, *words, given=""):
        return program.run(f"unix:{self.path}", *words, input=given)

    def expects(self, words, *shown, status=0):
        """With everything on flash before."""
        if statistics(self.path)["curr_items"] != "0":
            flashed(self.path)
        done = self.run(*words.split())
        check(done.returncode == status and all(text in done.stdout for text in shown) and not done.stderr,
              f"{words}: {done.returncode}, not {status} with {shown}: {done.stdout} {done.stderr}")


def changes(server):
    server.expects("counter incr c --ttl 1h", '"value":1', '"created":true')
    server.expects("counter incr c --ttl 1h", '"value":2', '"created":false')
    ttl = json.loads(server.run("item", "show", "counter:c").stdout)["ttl_s"]
    check(3500 < ttl <= 3600, f"counted on flash, its ttl is {ttl}")
    server.expects("counter decr c", '"value":1')
    server.expects("counter get c", '"value":1')
    server.expects("eventlog put e one", '"eventlog":"e"')
    server.expects("eventlog put e two", '"eventlog":"e"')
    server.expects("eventlog fetch e", '"one"', '"two"')
    server.expects("table add t x", '"added":true')
    server.expects("table add t y", '"added":true')
    server.expects("table fetch t", '"x"', '"y"')
    server.expects("array add a one", '"adds":1')
    server.expects("array add a two", '"adds":1')
    server.expects("array fetch a", '"one"', '"two"')
    server.expects("hash set h f 1", '"created":true')
    server.expects("hash set h f 2", '"created":false')
    server.expects("hash get h f", '"2"')
    server.expects("visitors hit v --period 1h", '"current":1')
    server.expects("visitors hit v --period 1h", '"current":2')
    server.expects("lock acquire l --ttl 10m --fence", '"acquired":true')
    server.expects("lock release l --force", '"released":true')
    server.expects("lock acquire l --ttl 10m --fence", '"acquired":true')
    server.expects("table check t")


def batches(server):
    flashed(server.path)
    given = "".join(f"n{i % 100}\n" for i in range(300))
    for _ in range(2):
        done = server.run("counter", "incr", "-", given=given)
        check(done.returncode == 0, f"a batch of counters: {done}")
        flashed(server.path)
    done = server.run("counter", "get", *(f"n{i}" for i in range(100)), "-o", "value")
    check(done.stdout.split() == ["6"] * 100, f"counters that were counted in batches: {done}")


def main():
    with tempfile.TemporaryDirectory() as directory:
        options = f"ext_page_size=2,ext_wbuf_size=2,ext_path={directory}/flash:64m,ext_item_size=1,ext_item_age=0"
        # What stands for an item on flash holds up others of its size: as many sizes as there can be.
        with Servers(1, "-m", "64", "-n", "16", "-f", "1.05", "-o", options) as servers:
            path, = servers.paths
            changes(Server(path))
            batches(Server(path))
            written = int(statistics(path)["extstore_objects_written"])
            check(written > 200, f"only {written} items ever were on flash")
    finish()


if __name__ == "__main__":
    main()
