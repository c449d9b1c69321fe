#!/usr/bin/env python3
"""Servers with items of 8 and 64 KiB: what needs several items is written, compacted and recopied in pieces, and what is refused is not stored.

Usage: small_items_test.py BUILD_DIR
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import start_memcached

DEADLINE_S = 120
REFUSED = 76
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")


class Servers:
    def __init__(self, directory, kib):
        paths = [os.path.join(directory, name) for name in "abc"]
        self.processes = [start_memcached(path, "-I", f"{kib}k", "-o", f"slab_chunk_max={kib << 10}") for path in paths]
        self.names = ",".join(f"unix:{path}" for path in paths)

    def end(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def run(self, copies, *arguments, given=None):
        done = subprocess.run([mcds, "-s", self.names, "--copies", str(copies), *arguments], input=given, capture_output=True, text=True,
                              timeout=DEADLINE_S, check=False)
        return done.returncode, done.stdout, done.stderr.strip()

    def done(self, copies, *arguments, given=None):
        status, out, err = self.run(copies, *arguments, given=given)
        check(status == 0, f"--copies {copies} {' '.join(arguments)[:60]}: {status} {err[:300]}")
        return out


def same(servers, copies, structure, name, expected, what):
    found = sorted(servers.done(copies, structure, "fetch", name, "-o", "value").splitlines())
    check(found == sorted(expected), f"{structure} {what}, in {copies}: {len(found)} of {len(expected)}")


def array(servers, numbers):
    values = [f"value {number}" for number in range(4000)]
    servers.done(1, "array", "add", "jobs", "-", given="\n".join(values))
    servers.done(1, "array", "delete", "jobs", "-", given="\n".join(values[:1500]))
    del values[:1500]
    same(servers, 1, "array", "jobs", values, "in one batch")
    servers.done(1, "array", "compact", "jobs")
    same(servers, 1, "array", "jobs", values, "compacted")
    values = [f"other {number}" for number in range(3000)]
    for _ in range(2):
        servers.done(1, "array", "replace", "jobs", "-", given="\n".join(values))
    same(servers, 1, "array", "jobs", values, "replaced")
    servers.done(1, "array", "delete", "jobs", "-", given="\n".join(values[10:]))
    del values[10:]
    servers.done(1, "array", "compact", "jobs")
    servers.done(1, "array", "add", "jobs", *[f"x{number}" for number in range(50)])
    values += [f"x{number}" for number in range(50)]
    for copies in numbers:
        servers.done(copies, "array", "recopy", "jobs")
        same(servers, copies, "array", "jobs", values, "recopied")


def segments_of_each_copy(servers):
    """Each copy of a journal has segments of its own: that the others lack them is no fault."""
    for copies in (2, 3):
        values = [f"value {number}" for number in range(2000)]
        servers.done(copies, "array", "add", f"whole{copies}", "-", given="\n".join(values))
        keys = servers.done(copies, "array", "where", f"whole{copies}", "-o", "value").splitlines()
        check(len(keys) > 1, f"it has segments: {keys}")
        verdicts = json.loads(servers.done(copies, "where", "--probe", "--live").splitlines()[-1])["verdicts"]
        check(list(verdicts) == ["ok"], f"all of it is where it should be: {verdicts}")


def too_long_for_a_mark(servers):
    """The roots of three copies are named in one mark."""
    values = [f"{number} {'v' * 2000}" for number in range(290)]
    servers.done(1, "array", "add", "long", "-", given="\n".join(values))
    status, _, err = servers.run(3, "array", "recopy", "long")
    check(status == REFUSED, f"it is refused: {status} {err}")
    same(servers, 1, "array", "long", values, "as it was")
    servers.done(1, "array", "add", "long", "one more")
    same(servers, 1, "array", "long", [*values, "one more"], "as it was, and growing")


def elements(servers, structure, verb, tail, numbers):
    names = [f"{number} {'n' * (150 if number % 3 == 0 else 5)}" for number in range(6000)]
    servers.done(1, structure, verb, "big", "-", given="".join(name + tail + "\n" for name in names))
    servers.done(1, structure, "remove", "big", "-", given="\n".join(names[:2000]))
    del names[:2000]
    servers.done(1, structure, "compact", "big")
    for copies in numbers:
        servers.done(copies, structure, "recopy", "big")
        same(servers, copies, structure, "big", [name + tail for name in names], "recopied")
        whole = servers.done(copies, structure, "check", "big")
        check('"complete":true' in whole, f"{structure} in {copies}: its index is complete: {whole}")


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
    for kib, numbers in ((8, (2, 3, 1)), (64, (2,))):
        with tempfile.TemporaryDirectory() as directory:
            servers = Servers(directory, kib)
            try:
                segments_of_each_copy(servers)
                array(servers, numbers)
                if kib == 8:
                    too_long_for_a_mark(servers)
                elements(servers, "table", "add", "", numbers)
                elements(servers, "hash", "set", "\tvalue", numbers)
                eventlog(servers, full=kib == 8)
            finally:
                servers.end()
    finish()


if __name__ == "__main__":
    main()
