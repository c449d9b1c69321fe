#!/usr/bin/env python3
"""A pool of more servers than a process may at first have connections.

Usage: large_pools_test.py BUILD_DIR
"""
import json
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
import program
from real_servers import Servers

SERVERS, FEW = 90, 50


def run(servers, *arguments, given="", hard=None):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, hard or resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    return program.run(servers, *arguments, input=given, preexec_fn=limit)


def verbs_reach_every_server(servers):
    done = run(servers, "servers")
    check(done.returncode == 0 and len(done.stdout.splitlines()) == SERVERS, f"servers: {done.stderr}")
    names = "".join(f"n{i}\n" for i in range(2000))
    done = run(servers, "counter", "incr", "-", given=names)
    check(done.returncode == 0 and len(done.stdout.splitlines()) == 2000, f"counter incr -: {done.stderr}")
    done = run(servers, "where", "--probe", "-", given=names.replace("n", "counter:n"))
    found = {json.loads(line)["server"] for line in done.stdout.splitlines()}
    check(done.returncode == 0 and len(found) == SERVERS, f"where --probe -: {done.stderr} {len(found)} servers")


def a_command_keeps_its_limit(servers):
    names = "".join(f"n{i}\n" for i in range(2000))
    done = run(servers, "table", "add", "t", "-", given=names)
    check(done.returncode == 0, f"table add -: {done.stderr}")
    done = run(servers, "cache", "run", "limit", "--ttl", "1m", "--", "sh", "-c", "ulimit -Sn")
    check(done.stdout.strip() == str(FEW), f"a command's own limit: {done}")


def what_does_not_fit_says_so(servers):
    names = "".join(f"n{i}\n" for i in range(2000))
    done = run(servers, "counter", "incr", "-", given=names, hard=FEW)
    lines = done.stderr.splitlines()
    check(done.returncode == 69, f"more servers than may be reached: {done.returncode}")
    check(0 < len(done.stdout.splitlines()) < 2000, "the servers that are reached answer")
    check(len(lines) <= 10 and any(f"the limit of {FEW} open files" in line and "ulimit -Hn" in line for line in lines),
          f"the limit is named: {done.stderr[:500]}")


def main():
    with Servers(SERVERS, "-m", "2") as pool:
        verbs_reach_every_server(pool.list)
        a_command_keeps_its_limit(pool.list)
        what_does_not_fit_says_so(pool.list)
    finish()


if __name__ == "__main__":
    main()
