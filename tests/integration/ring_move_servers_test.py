#!/usr/bin/env python3
"""What may happen to a move: it is stopped for seconds in the middle of a batch, or a new server is, or that one has too little memory. Items
end when they would have ended, and what a server threw out is told.

Usage: ring_move_servers_test.py BUILD_DIR
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import connected, start_memcached

mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
ITEMS = 4000
STOPPED_S = 4
TTL_TOLERANCE_S = 2


def exchange(file, lines, last):
    """Whole answers to `lines`, which the last one ends."""
    file.write(lines + last + b"\r\n")
    file.flush()
    answer = []
    for line in iter(file.readline, b""):
        if last == b"version" and line.startswith(b"VERSION") or last == b"stats" and line == b"END\r\n":
            return answer
        answer.append(line)
    raise EOFError(f"{last} was not answered")


def store(path, size):
    """Returns when each key ends, between two times; None: never."""
    with connected(path) as file:
        before = time.time()
        lines = [f"set k:{number} {number % 9} {0 if number % 2 else 50 + number} {size} noreply\r\n{number:0{size}}\r\n" for number in range(ITEMS)]
        exchange(file, "".join(lines).encode(), b"version")
        after = time.time()
    return [None if number % 2 else (before + 50 + number, after + 50 + number) for number in range(ITEMS)]


def count(path, name=b"curr_items"):
    with connected(path) as file:
        return int(dict(line.split()[1:3] for line in exchange(file, b"", b"stats"))[name])


def wrong_ends(path, ends):
    with connected(path) as file:
        before = time.time()
        answer = exchange(file, "".join(f"mg k:{number} t f\r\n" for number in range(ITEMS)).encode(), b"version")
        after = time.time()
    for number, (line, end) in enumerate(zip(answer, ends)):
        words = line.split()
        if words[0] != b"HD" or int(words[2][1:]) != number % 9:
            yield f"k:{number}: {line}"
            continue
        ttl = int(words[1][1:])
        if end is None and ttl != -1:
            yield f"k:{number}: {line} for never"
        # Stored and shown in whole seconds.
        elif end is not None and not end[0] - after - TTL_TOLERANCE_S <= ttl <= end[1] - before + TTL_TOLERANCE_S:
            yield f"k:{number}: {line} for {end[0] - after:.2f} to {end[1] - before:.2f}"


def stopped(which):
    with tempfile.TemporaryDirectory() as directory:
        old, new = (os.path.join(directory, name) for name in ("old", "new"))
        servers = [start_memcached(path) for path in (old, new)]
        ends = store(old, 20)
        mover = subprocess.Popen([mcds, "-s", "unix:" + old, "--timeout", "30s", "ring", "move", "--to", "unix:" + new, "--rate", str(ITEMS)],
                                 stdout=subprocess.PIPE, text=True)
        while mover.poll() is None and count(new) < ITEMS // 10:
            time.sleep(0.001)
        process = mover if which == "mover" else servers[1] if which == "new server" else servers[0]
        process.send_signal(signal.SIGSTOP)
        time.sleep(STOPPED_S)
        process.send_signal(signal.SIGCONT)
        out = mover.communicate()[0]
        check(mover.returncode == 0 and json.loads(out.splitlines()[-1])["copied"] == ITEMS, f"{which} stopped: {mover.returncode} {out}")
        wrong = list(wrong_ends(new, ends))
        check(not wrong, f"{which} stopped: {len(wrong)} of {ITEMS} items: {wrong[:3]}")
        for server in servers:
            server.kill()
            server.wait()


def short_of_memory():
    with tempfile.TemporaryDirectory() as directory:
        old, new = (os.path.join(directory, name) for name in ("old", "new"))
        servers = [start_memcached(old), start_memcached(new, "-m", "2")]
        store(old, 2000)
        move = [mcds, "-s", "unix:" + old, "ring", "move", "--to", "unix:" + new]
        done = subprocess.run(move, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        evictions = count(new, b"evictions")
        check(evictions > 0, f"{new} evicts nothing")
        check(done.returncode == 2, f"a new server evicted items: {done.returncode} {done.stderr}")
        check(lines[-1]["evicted"] == evictions, f"{evictions} were evicted: {lines[-1]}")
        told = [line for line in lines if "restarted" in line]
        check(len(told) == 1 and told[0]["to"] == "unix:" + new and told[0]["evicted"] == evictions and not told[0]["restarted"], f"told: {told}")
        for server in servers:
            server.kill()
            server.wait()


def main():
    threads = [threading.Thread(target=stopped, args=(which,)) for which in ("mover", "new server", "old server")]
    threads.append(threading.Thread(target=short_of_memory))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
    finish()
