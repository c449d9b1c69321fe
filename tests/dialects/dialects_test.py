#!/usr/bin/env python3
"""The conformance suite on memcached with other flags, on what speaks as other servers do, and on pools that mix them.

Usage: dialects_test.py BUILD_DIR. A third of them; all with MCDS_TEST_FULL=1.
"""
import os
import socket
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", part) for part in ("support", "conformance")]
from checks import check, failures, finish  # noqa: E402
from dialect import TABLE, DialectServer  # noqa: E402
from engines import ENGINES, refused_by, rows_of_page  # noqa: E402
from real_servers import dumped, start_memcached  # noqa: E402
from suite import Suite  # noqa: E402

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
FULL = os.environ.get("MCDS_TEST_FULL") == "1"

FLAGS = [["-C"], ["-M", "-m", "8"], ["-B", "ascii"], ["-X"], ["-I", "8m"], ["-R", "1", "-t", "1"], ["-F"]]
THIRD = {"memcached-1.5.22", "memcached-1.6.12", "twemproxy", "mcrouter", "pogocache", "memcachedb", "-C"}


def start(directory, name, flags):
    path = os.path.join(directory, name)
    return start_memcached(path, *flags), path


def short(refusal):
    words = [word for word in refusal.split(": exit")[0].split() if not word.startswith("%")]
    option = [word for word in words[2:] if word in ("--exact", "--ttl") and words[0] == "counter" and words[1] == "incr"]
    return " ".join(words[:2] + option)


def conforms(name, servers, *options, refused=frozenset()):
    suite = Suite(MCDS, servers, options).all()
    what = f"{name} {' '.join(options)}"
    check(not suite.faults, f"{what}: {suite.line()}\n  " + "\n  ".join(suite.faults))
    others = [line for line in suite.refused if short(line) not in refused]
    check(not others, f"{what} refuses what works there:\n  " + "\n  ".join(others))
    missing = set(refused) - {short(line) for line in suite.refused}
    check(not missing, f"{what} was to refuse {sorted(missing)}")


def keys(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with connection.makefile("rwb") as file:
            return [key.decode() for key in dumped(file)]


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
    return ["-m", "64", "-o", f"ext_page_size=2,ext_wbuf_size=2,ext_path={directory}/flash:64m,ext_item_size=1,ext_item_age=0"]


def without_cas(directory, running):
    """What is refused there in several copies leaves nothing, a full structure is refused by name, and a cache says what it is not."""
    paths = [start(directory, f"without-cas-{number}", ["-C"]) for number in range(2)]
    running.extend(process for process, _ in paths)
    one, both = f"unix:{paths[0][1]}", ",".join(f"unix:{path}" for _, path in paths)

    def run(servers, *words, given=""):
        return subprocess.run([MCDS, "-s", servers, *words], input=given, capture_output=True, text=True, timeout=60, check=False)

    for words in ("hash set h f v", "table add t m", "counter incr c"):
        done = run(both, "--copies", "2", *words.split())
        check(done.returncode == 76 and "does not support cas" in done.stderr, f"--copies 2 {words} on -C: {done}")
        left = [key for _, path in paths for key in keys(path)]
        check(not left, f"--copies 2 {words} on -C leaves {left}")
    for servers, copies in ((one, "1"), (both, "1"), (both, "2")):
        done = run(servers, "--copies", copies, "cache", "run", "k", "--ttl", "1m", "--", "echo", "ran")
        check(done.returncode == 0 and done.stdout == "ran\n" and "without the cache" in done.stderr, f"cache run on -C: {done}")
    for _ in range(8):
        done = run(one, "array", "add", "a", "-", given=f"{'x' * 1000}\n" * 250)
        if done.returncode != 0:
            break
    check(done.returncode == 76 and "is full, and the server does not support cas" in done.stderr, f"a full array on -C: {done}")


def main():
    running = []
    page_says_what_is_run()
    with tempfile.TemporaryDirectory() as directory:
        try:
            for flags in FLAGS:
                name = " ".join(flags)
                if not FULL and name not in THIRD:
                    continue
                process, path = start(directory, f"flags{len(running)}", flags)
                running.append(process)
                conforms(name, f"unix:{path}", refused=refused_by(name))
                if name == "-C":
                    left = [key for key in keys(path) if "lock" in key and "fence" not in key]
                    check(not left, f"locks are left behind on -C: {left}")
            without_cas(directory, running)
            process, path = start(directory, "ext_path", on_flash(directory))
            running.append(process)
            conforms("ext_path", f"unix:{path}", refused=refused_by("ext_path"))
            process, backend = start(directory, "backend", [])
            running.append(process)
            paths = {}
            for dialect in TABLE:
                paths[dialect.name] = os.path.join(directory, dialect.name)
                DialectServer(dialect, backend, paths[dialect.name])
                if FULL or dialect.name in THIRD:
                    conforms(dialect.name, f"unix:{paths[dialect.name]}", refused=refused_by(dialect.name))
            left = [key for key in keys(backend) if "probe" in key]
            check(not left, f"probe keys are left behind: {left}")
            process, other = start(directory, "other", [])
            running.append(process)
            conforms("a new, an old and a proxy", f"unix:{other},unix:{paths['memcached-1.5.22']},unix:{paths['twemproxy']}")
            if FULL:
                conforms("classic", f"unix:{other}", "--protocol", "classic")
                conforms("meta", f"unix:{other}", "--protocol", "meta")
        finally:
            for process in running:
                process.kill()
                process.wait()
    finish()


if __name__ == "__main__":
    main()
