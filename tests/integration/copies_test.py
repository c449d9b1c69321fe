#!/usr/bin/env python3
"""Several copies on real servers: a client that cannot reach one of them, a server that is gone for everybody, a wrong number.

Usage: copies_test.py BUILD_DIR

One client runs one command cut off from one server, for every verb and every server, with 2 and with 3 copies: it succeeds, and
everybody reads afterwards what it was told. One server is dead, or frozen: every verb succeeds. A command that says another number
of copies than a structure is kept in, also one that has outgrown one item, leaves every byte as it is, and is right or refused.
"""
import concurrent.futures
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from copies_verbs import VERBS
import program
from real_servers import Servers, items

timeout = []  # an option, where servers do not answer


class Pool(Servers):
    def __init__(self):
        super().__init__("abc", "-m", "1024" if FULL else "128")

    def listed(self, without=None):
        """Names place the keys, so that who is cut off from one server looks for them in the same places."""
        return ",".join(f"{name}=unix:{self.directory + '/nobody' if i == without else path}" for i, (name, path) in enumerate(zip("abc", self.paths)))


def run(servers, copies, *arguments, **options):
    done = program.run(servers, "--copies", str(copies), *timeout, *arguments, **options)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def values(text):
    return sorted(text.splitlines())


# What is done before, what one client does cut off from one server, what everybody asks, and what is answered.
CUT_OFF = {
    "hash set": ([["hash", "set", "N", "f", "old"]], ["hash", "set", "N", "f", "new"], ["hash", "get", "N", "f"], "new"),
    "hash set, new": ([], ["hash", "set", "N", "f", "new"], ["hash", "fetch", "N"], "f\tnew"),
    "hash remove": ([["hash", "set", "N", "f", "old"]], ["hash", "remove", "N", "f"], ["hash", "count", "N"], "0"),
    "table add, again": ([["table", "add", "N", "m"], ["table", "remove", "N", "m"]], ["table", "add", "N", "m"], ["table", "has", "N", "m"], "1"),
    "table add": ([["table", "add", "N", "k"]], ["table", "add", "N", "m"], ["table", "fetch", "N"], "k\nm"),
    "table remove": ([["table", "add", "N", "m"]], ["table", "remove", "N", "m"], ["table", "has", "N", "m"], "0"),
    "counter set": ([["counter", "set", "N", "100"]], ["counter", "set", "N", "5"], ["counter", "get", "N"], "5"),
    "counter incr after set": ([["counter", "set", "N", "100"], ["counter", "set", "N", "5"]], ["counter", "incr", "N"], ["counter", "get", "N"], "6"),
    "counter remove": ([["counter", "set", "N", "100"]], ["counter", "remove", "N"], ["counter", "get", "N"], ""),
    "counter incr, exact": ([["counter", "incr", "N", "7"]], ["counter", "incr", "N"], ["counter", "get", "N"], "8"),
    "counter decr, exact": ([["counter", "incr", "N", "7"]], ["counter", "decr", "N", "2"], ["counter", "get", "N"], "5"),
    "counter set, exact": ([["counter", "incr", "N", "7"]], ["counter", "set", "N", "5"], ["counter", "get", "N"], "5"),
    "counter remove, exact": ([["counter", "incr", "N", "7"]], ["counter", "remove", "N"], ["counter", "get", "N"], ""),
}


def check_cut_off(servers):
    """The share of unknown outcomes is told."""
    unknown = total = 0
    for copies in (2, 3):
        for name, (before, act, ask, expected) in CUT_OFF.items():
            for away in range(3):
                subject = f"{name.replace(' ', '-').replace(',', '')}-{copies}-{away}"
                words = lambda words: [subject if word == "N" else word for word in words]  # noqa: E731
                for one in before:
                    status, _, error = run(servers.listed(), copies, *words(one))
                    check(status == 0, f"{subject}: {one}: {status} {error}")
                status, _, error = run(servers.listed(without=away), copies, *words(act))
                total += 1
                unknown += status == 80
                check(status == 0, f"{subject}, cut off from {'abc'[away]}: {status} {error}")
                for reader in (None, None, *range(3)):
                    if ask is None or (copies == 2 and reader is not None):
                        continue  # of two copies one may have missed it, and be the only one who is asked
                    _, told, error = run(servers.listed(without=reader), copies, "-o", "value", *words(ask))
                    check(values(told) == values(expected), f"{subject}: read as {told!r} {error}, not {expected!r}")
    print(f"cut off from one server: {unknown} of {total} outcomes unknown")


def check_down(servers, down, how, subjects, numbers=(2, 3)):
    for copies in numbers:
        for subject in subjects:
            for verb in VERBS:
                words = [word.replace("N", f"{subject}-{copies}") if word in ("N", "Nx", "Np") else word for word in verb]
                status, told, error = run(servers.listed(), copies, *words)
                # A drop needs every copy's server.
                right = (69, 0) if verb[1] == "drop" else (0,)
                check(status in right, f"{how} {'abc'[down]}, {copies} copies, {subject}: {verb}: {status} {told} {error}")
                check('"complete":false' not in told, f"{how} {'abc'[down]}: {verb} tells a loss: {told}")


NUMBERS = [(kept, other) for kept in (1, 2, 3) for other in (1, 2, 3) if kept != other]
# What is written, from standard input where it outgrows one item, and how it is read.
KEPT = {
    "hash": (["hash", "set", "N", "f", "1", "g", "2"], None, ["hash", "fetch", "N"]),
    "table": (["table", "add", "N", "m", "k"], None, ["table", "fetch", "N"]),
    "large hash": (["hash", "set", "N", "-"], "".join(f"field{n}\tvalue{n}\n" for n in range(100000 if FULL else 5000)), ["hash", "fetch", "N"]),
    "large table": (["table", "add", "N", "-"], "".join(f"line {n} \n" for n in range(100000 if FULL else 20000)), ["table", "fetch", "N"]),
    "exact counter": (["counter", "incr", "N", "5", "--exact"], None, ["counter", "get", "N"]),
    "created counter": (["counter", "incr", "N", "5"], None, ["counter", "get", "N"]),
    "set counter": (["counter", "set", "N", "5"], None, ["counter", "get", "N"]),
}


COUNTER_VERBS = [["counter", *words] for words in (
    ("get", "N"), ("incr", "N"), ("decr", "N"), ("set", "N", "7"), ("set", "N", "7", "--if-absent"), ("remove", "N"), ("take", "N"), ("incr", "N", "--exact"))]


def check_wrong_numbers(servers):
    for what, (write, given, read) in KEPT.items():
        for kept, other in ((1, 2), (2, 1), (2, 3)) if given and not FULL else NUMBERS:
            subject = f"{what.replace(' ', '-')}-{kept}-{other}"
            named = lambda words: [subject if word == "N" else word for word in words]  # noqa: E731,B023
            status, _, error = run(servers.listed(), kept, *named(write), input=given)
            check(status == 0, f"{subject}: {status} {error}")
            told = values(run(servers.listed(), kept, "-o", "value", *named(read))[1])
            check(not given or len(told) == given.count("\n"), f"{subject}: {len(told)} are read")
            before = items(servers.paths)
            for verb in COUNTER_VERBS if write[0] == "counter" else (verb for verb in VERBS if verb[0] == write[0]):
                status, _, error = run(servers.listed(), other, *named(verb))
                usage = status == 64 and verb[1] == "take" and other > 1
                check(status == 65 and f"--copies {kept}" in error or usage or verb[1] == "where", f"{subject}, {verb}: {status} {error}")
            after = items(servers.paths)
            check(after == before, f"{subject} is changed by commands with {other}: {list(set(after.items()) ^ set(before.items()))[:5]}")
            check(values(run(servers.listed(), kept, "-o", "value", *named(read))[1]) == told, f"{subject} reads otherwise afterwards")


def main():
    for part in (check_cut_off, check_wrong_numbers):
        with Pool() as servers:
            part(servers)
    for how, stop in (("dead", signal.SIGKILL), ("frozen", signal.SIGSTOP)):
        for down in range(3 if how == "dead" or FULL else 1):
            with Pool() as servers:
                check_down(servers, down, "before the end of", ("old1", "old2"))
                servers.processes[down].send_signal(stop)
                if how == "dead":
                    servers.processes[down].wait()
                    check_down(servers, down, how, ("old1", "old2", "new1", "new2"))
                    continue
                timeout[:] = ["--timeout", "700ms"]
                subjects = (("old1", (2, 3)), ("old2", (2, 3)), ("new1", (2, 3)), ("new2", (2, 3))) if FULL else (("old1", (2,)), ("new1", (2,)))
                with concurrent.futures.ThreadPoolExecutor(4) as pool:  # each verb waits for a timeout
                    list(pool.map(lambda subject: check_down(servers, down, how, subject[:1], subject[1]), subjects))  # noqa: B023
                timeout.clear()
    finish()


main()
