#!/usr/bin/env python3
"""Listing a live server: whatever becomes of our own output, no other client waits, and the list is whole.

Usage: harmless_test.py BUILD_DIR [RUNS]. MCDS_TEST_SERVERS=DIR adds DIR/*/memcached to Debian's memcached. RUNS repeats
the case in which servers used to stop for good (default 1).
"""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
from program import MCDS, environment, wait_for  # noqa: E402
from traffic import Memcached, Traffic, programs  # noqa: E402

RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 1
KEYS = 200_000
PAUSE = 4
MOST = 2.5  # seconds that another client may wait, on a machine with other work; whoever waits for us does so for PAUSE


def start(server, *words, **options):
    return subprocess.Popen([MCDS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment(MCDS_SERVERS=server.address), start_new_session=True, **options)


def ended(process):
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err.decode()


def lists_all(name, process, least=KEYS):
    code, out, err = ended(process)
    lines = out.count(b"\n")
    check(code == 0 and lines >= least, f"{name}: exit {code}, {lines} of {least} lines, {err}")


def waits(name, traffic):
    check(traffic.longest() < MOST, f"{name}: another client waited {traffic.longest():.2f} s")


def paused_reader(name, server):
    with Traffic(server, KEYS) as traffic:
        process = start(server, "item", "list")
        time.sleep(PAUSE)
    lists_all(f"{name}: a reader that pauses", process)
    waits(f"{name}: a reader that pauses", traffic)


def stopped(name, server, *words):
    """All that a terminal's Ctrl-Z stops."""
    with Traffic(server, KEYS) as traffic:
        process = start(server, *words)
        time.sleep(0.03)
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(PAUSE)
        os.killpg(process.pid, signal.SIGCONT)
        code, _, err = ended(process)
    what = f"{name}: mcds {' '.join(words)}, stopped"
    check(code in (0, 2), f"{what}: exit {code}, {err}")
    waits(what, traffic)


def killed(name, server):
    process = start(server, "item", "list")
    time.sleep(0.3)
    process.kill()
    ended(process)
    wait_for(lambda: server.statistics()["lru_crawler_running"] == "0", f"{name}: the end of a dump whose reader was killed")
    lists_all(f"{name}: after a list that was killed", start(server, "item", "list"))


def without_room(name, server):
    """A temporary file that cannot grow, as on a full disk: what was listed is said to be not all."""
    limit = resource.RLIMIT_FSIZE
    with Traffic(server, KEYS) as traffic:
        process = start(server, "item", "list", preexec_fn=lambda: resource.setrlimit(limit, (1 << 20, 1 << 20)))
        time.sleep(PAUSE)
        code, out, err = ended(process)
    check(code == 73 and 0 < out.count(b"\n") < KEYS and "TMPDIR" in err, f"{name}: no room: exit {code}, {out.count(10)} lines, {err}")
    waits(f"{name}: no room", traffic)


def growing(name, program, directory, run):
    """A reader that pauses, a second dump, and a hash table that grows: all at once."""
    with Memcached(program, directory, "-o", "hashpower=13") as server:
        server.store(0, 3000 + 700 * run)
        ends = threading.Event()

        def write():
            for first in range(0, 250_000, 5000):
                if ends.is_set():
                    break
                server.store(first, first + 5000)

        writer = threading.Thread(target=write)
        writer.start()
        lists = [start(server, "item", "list"), start(server, "item", "list", "--sort", "size")]
        time.sleep(PAUSE / 8)
        lists.append(start(server, "item", "list"))
        time.sleep(PAUSE / 8)
        done = [ended(one) for one in lists]
        ends.set()
        writer.join(timeout=60)
        codes = [code for code, _, _ in done]
        check(set(codes) <= {0, 75}, f"{name}: a growing table and two lists, run {run}: exits {codes}, {[err for _, _, err in done]}")
        check(not writer.is_alive() and server.answers(within=20), f"{name}: the server does not answer after run {run}")
        if server.process.poll() is None and writer.is_alive():
            server.process.kill()
        return codes


def main():
    for name, program in programs():
        with tempfile.TemporaryDirectory() as directory:
            if RUNS == 1:
                with Memcached(program, directory) as server:
                    server.store(0, KEYS)
                    paused_reader(name, server)
                    for words in (["item", "list"], ["where", "--probe", "--live", "--list"], ["ring", "diff", "--live", "--to", "10.0.0.1"], ["item", "save", "-"]):
                        stopped(name, server, *words)
                    killed(name, server)
                    without_room(name, server)
            codes = [code for run in range(RUNS) for code in growing(name, program, directory, run)]
            if RUNS > 1:
                print(f"{name}: {RUNS} runs of a growing table with three lists: {codes.count(0)} lists whole, {codes.count(75)} times try again")
    finish()


if __name__ == "__main__":
    main()
