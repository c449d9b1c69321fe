#!/usr/bin/env python3
"""Servers with items of 8 and 64 KiB: what needs several items is written, compacted and dropped in pieces, and what is refused is not stored.

Usage: small_items_test.py BUILD_DIR
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
import program
from real_servers import Servers

REFUSED = 76


def largest_chunk(kib):
    """As many bytes; memcached 1.6.38 has the option in kilobytes, and refuses so many."""
    option = f"slab_chunk_max={kib << 10}"
    refused = subprocess.run(["memcached", "-o", option, "-h"], capture_output=True, check=False).returncode
    return f"slab_chunk_max={kib}" if refused else option


class Pool(Servers):
    def run(self, copies, *arguments, given=None):
        done = program.run(self.list, "--copies", str(copies), *arguments, input=given)
        return done.returncode, done.stdout, done.stderr.strip()

    def done(self, copies, *arguments, given=None):
        status, out, err = self.run(copies, *arguments, given=given)
        check(status == 0, f"--copies {copies} {' '.join(arguments)[:60]}: {status} {err[:300]}")
        return out


def same(servers, copies, structure, name, expected, what):
    found = sorted(servers.done(copies, structure, "fetch", name, "-o", "value").splitlines())
    check(found == sorted(expected), f"{structure} {what}, in {copies}: {len(found)} of {len(expected)}")


def array(servers):
    values = [f"value {number}" for number in range(4000)]
    servers.done(1, "array", "add", "jobs", "-", given="\n".join(values))
    servers.done(1, "array", "remove", "jobs", "-", given="\n".join(values[:1500]))
    del values[:1500]
    same(servers, 1, "array", "jobs", values, "in one batch")
    same(servers, 1, "array", "jobs", values, "compacted")
    values = [f"other {number}" for number in range(3000)]
    for _ in range(2):
        servers.done(1, "array", "replace", "jobs", "-", given="\n".join(values))
    same(servers, 1, "array", "jobs", values, "replaced")
    servers.done(1, "array", "remove", "jobs", "-", given="\n".join(values[10:]))
    del values[10:]
    servers.done(1, "array", "add", "jobs", *[f"x{number}" for number in range(50)])
    values += [f"x{number}" for number in range(50)]
    same(servers, 1, "array", "jobs", values, "grown again")
    servers.done(1, "array", "drop", "jobs")


def elements(servers, structure, verb, tail, numbers):
    for copies in numbers:
        names = [f"{number} {'n' * (150 if number % 3 == 0 else 5)}" for number in range(6000)]
        servers.done(copies, structure, verb, "big", "-", given="".join(name + tail + "\n" for name in names))
        servers.done(copies, structure, "remove", "big", "-", given="\n".join(names[:2000]))
        del names[:2000]
        same(servers, copies, structure, "big", [name + tail for name in names], "written")
        whole = servers.done(copies, structure, "check", "big")
        check('"complete":true' in whole, f"{structure} in {copies}: its index is complete: {whole}")
        servers.done(copies, structure, "drop", "big")


def eventlog(servers, full):
    """A directory of one small item has room for some hundred parts."""
    given = [f"event {number} {'y' * 50}" for number in range(20000)]
    status, out, err = servers.run(1, "eventlog", "put", "log", "-", given="\n".join(given))
    answer = json.loads(out)
    check(answer["events"] + answer["failed"] == len(given), f"each is stored or refused: {out}")
    check((status == REFUSED and "no room" in err) == full and status in (0, REFUSED), f"{status}: {err[:300]}")
    same(servers, 1, "eventlog", "log", given[:answer["events"]], "what was stored, and nothing that was refused")
    check(answer["last_id"] == json.loads(servers.done(1, "eventlog", "fetch", "log").splitlines()[-1])["id"], "the last one's id")


def main():
    for kib, numbers in ((8, (1, 2, 3)), (64, (2,))):
        with Pool(3, "-I", f"{kib}k", "-o", largest_chunk(kib)) as servers:
            array(servers)
            elements(servers, "table", "add", "", numbers)
            elements(servers, "hash", "set", "\tvalue", numbers)
            eventlog(servers, full=kib == 8)
    finish()


if __name__ == "__main__":
    main()
