#!/usr/bin/env python3
"""The conformance suite on memcached with other flags, on what speaks as other servers do, and on pools that mix them; with one
copy and with two.

Usage: dialects_test.py BUILD_DIR. A third of them; all with MCDS_TEST_FULL=1.
"""
import concurrent.futures
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", part) for part in ("support", "conformance")]
from checks import FULL, check, finish  # noqa: E402
from dialect import TABLE, DialectServer  # noqa: E402
from engines import ENGINES, refused_by, rows_of_page  # noqa: E402
from program import MCDS, run  # noqa: E402
from real_servers import Servers, keys  # noqa: E402
from suite import Suite  # noqa: E402


FLAGS = [["-C"], ["-M", "-m", "8"], ["-B", "ascii"], ["-X"], ["-I", "8m"], ["-R", "1", "-t", "1"], ["-F"]]
THIRD = {"memcached-1.5.22", "memcached-1.6.12", "twemproxy", "mcrouter", "pogocache", "memcachedb", "-C"}


def short(refusal):
    words = [word for word in refusal.split(": exit")[0].split() if not word.startswith("%")]
    option = [word for word in words[2:] if word in ("--exact", "--ttl") and words[:2] in (["counter", "incr"], ["item", "set"])]
    return " ".join(words[:2] + option)


def conforms(name, servers, *options, refused=frozenset(), copies=1):
    suite = Suite(MCDS, servers, [*options, "--timeout", "10s"], copies).all()
    for fault in [fault for fault in suite.faults if fault.startswith("unknown: ") and short(fault.split(": ", 1)[1]) in refused]:
        suite.faults.remove(fault)  # of a server that closes the connection in its stead
        suite.refused.append(fault.split(": ", 1)[1])
    what = f"{name} {' '.join(options)}, {copies} copies"
    check(not suite.faults, f"{what}: {suite.line()}\n  " + "\n  ".join(suite.faults))
    others = [line for line in suite.refused if short(line) not in refused]
    check(not others, f"{what} refuses what works there:\n  " + "\n  ".join(others))
    missing = set(refused) - {short(line) for line in suite.refused}
    check(not missing, f"{what} was to refuse {sorted(missing)}")


def page_says_what_is_run():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../man/mcds-engines.7"), encoding="utf-8") as page:
        rows = rows_of_page(page.read())
    table = [(engine.name, engine.says) for engine in ENGINES]
    for one, other in zip(rows, table):
        check(one == other, f"mcds-engines(7) says {one}, the suite's table {other}")
    check(len(rows) == len(table), f"mcds-engines(7) has {len(rows)} rows, the suite's table {len(table)}")
    runs = {" ".join(flags) for flags in FLAGS} | {dialect.name for dialect in TABLE} | {"ext_path", "-B binary", "-S"}
    tabled = [run for engine in ENGINES for run in engine.runs]
    check(sorted(runs) == sorted(tabled), f"runs and rows of engines.py: {runs.symmetric_difference(tabled)}")


def on_flash(directory):
    return ["-m", "64", "-o", f"ext_page_size=2,ext_wbuf_size=2,ext_path={directory}.flash:64m,ext_item_size=1,ext_item_age=0"]


def without_cas():
    """What is refused there in several copies leaves nothing, a full structure is refused by name, and a cache says what it lacks."""
    with Servers(2, "-C") as servers:
        one, both = servers.list.split(",")[0], servers.list
        for words in ("hash set h f v", "table add t m", "counter incr c"):
            done = run(both, "--copies", "2", *words.split())
            check(done.returncode == 76 and "does not support cas" in done.stderr, f"--copies 2 {words} on -C: {done}")
            left = [key for path in servers.paths for key in keys(path)]
            check(not left, f"--copies 2 {words} on -C leaves {left}")
        for listed in (one, both):
            done = run(listed, "cache", "run", "k", "--ttl", "1m", "--", "echo", "ran")
            check(done.returncode == 0 and done.stdout == "ran\n" and "without the cache" in done.stderr, f"cache run on -C: {done}")
        for _ in range(8):
            done = run(one, "array", "add", "a", "-", input=f"{'x' * 1000}\n" * 250)
            if done.returncode != 0:
                break
        check(done.returncode == 76 and "is full, and the server does not support cas" in done.stderr, f"a full array on -C: {done}")


class Runs:
    """Servers, and the suites on them, some at a time: most of what they do is wait."""

    def __init__(self, servers):
        self.servers, self.directory, self.jobs = servers, servers.directory, []

    def start(self, *flags):
        return self.servers.start(*flags)

    def conforms(self, name, paths, *options, rows=True):
        """With one copy on the first, with two on both."""
        for copies in (1, 2)[:len(paths)]:
            servers = ",".join(f"unix:{path}" for path in paths[:copies])
            self.jobs.append((name, servers, options, refused_by(name, copies) if rows else frozenset(), copies))

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for job in [pool.submit(conforms, name, servers, *options, refused=refused, copies=copies)
                        for name, servers, options, refused, copies in self.jobs]:
                job.result()


def with_flags(runs):
    paths = {}
    for flags in FLAGS:
        name = " ".join(flags)
        if FULL or name in THIRD:
            paths[name] = [runs.start(*flags) for _ in range(2)]
            runs.conforms(name, paths[name])
    paths["ext_path"] = [runs.start(*on_flash(os.path.join(runs.directory, str(number)))) for number in range(2)]
    runs.conforms("ext_path", paths["ext_path"])
    return paths


def with_dialects(runs):
    backends = [runs.start() for _ in range(2)]
    paths = {}
    for dialect in TABLE:
        paths[dialect.name] = [os.path.join(runs.directory, f"{dialect.name}-{number}") for number in range(2)]
        for backend, path in zip(backends, paths[dialect.name]):
            DialectServer(dialect, backend, path)
        if FULL or dialect.name in THIRD:
            runs.conforms(dialect.name, paths[dialect.name])
    return backends, paths


def main():
    page_says_what_is_run()
    with Servers(0) as servers:
        runs = Runs(servers)
        flagged = with_flags(runs)
        backends, dialects = with_dialects(runs)
        other = runs.start()
        mixed = [f"unix:{path}" for path in (other, dialects["memcached-1.5.22"][0], dialects["twemproxy"][1])]
        runs.jobs.append(("a new, an old and a proxy", ",".join(mixed), (), frozenset(), 1))
        if FULL:
            runs.conforms("classic", [other], "--protocol", "classic", rows=False)
            runs.conforms("meta", [other], "--protocol", "meta", rows=False)
        runs.run()
        left = [key for path in flagged["-C"] for key in keys(path) if "lock" in key and "fence" not in key]
        check(not left, f"locks are left behind on -C: {left}")
        left = [key for backend in backends for key in keys(backend) if "probe" in key]
        check(not left, f"probe keys are left behind: {left}")
    without_cas()
    finish()


if __name__ == "__main__":
    main()
