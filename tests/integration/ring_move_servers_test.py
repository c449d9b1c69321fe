#!/usr/bin/env python3
"""What may happen to a move: it is stopped for seconds in the middle of a batch, or a new server is, or that one has too little memory, or is a
proxy. Items end when they would have ended, and what a server threw out is told.

Usage: ring_move_servers_test.py BUILD_DIR
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from sockets import own_address
from real_servers import connected, listens, start_memcached

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
    with connected(path) as file:
        lines = [f"set k:{number} {number % 9} {0 if number % 2 else 50 + number} {size} noreply\r\n{number:0{size}}\r\n" for number in range(ITEMS)]
        exchange(file, "".join(lines).encode(), b"version")


def ends(path):
    """When each item ends, between two times; None: never. With its flags; a line: it is not there."""
    with connected(path) as file:
        before = time.time()
        answer = exchange(file, "".join(f"mg k:{number} t f\r\n" for number in range(ITEMS)).encode(), b"version")
        after = time.time()
    for line in answer:
        words = line.split()
        if words[0] != b"HD":
            yield line
        else:
            ttl = int(words[1][1:])
            yield None if ttl == -1 else (before + ttl, after + ttl), int(words[2][1:])


def count(path, name=b"curr_items"):
    with connected(path) as file:
        return int(dict(line.split()[1:3] for line in exchange(file, b"", b"stats"))[name])


def is_kept(old, new):
    if isinstance(new, bytes) or new[1] != old[1] or old[0] is None or new[0] is None:
        return new == old
    return old[0][0] - TTL_TOLERANCE_S <= new[0][1] and new[0][0] <= old[0][1] + TTL_TOLERANCE_S


def stopped(which):
    with tempfile.TemporaryDirectory() as directory:
        old, new = (os.path.join(directory, name) for name in ("old", "new"))
        servers = [start_memcached(path) for path in (old, new)]
        store(old, 20)
        before = list(ends(old))
        check(len(before) == ITEMS and before[3] == (None, 3), f"{before[:4]}")
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
        pairs = enumerate(zip(before, ends(new), strict=True))
        wrong = [f"k:{number}: {there} for {here}" for number, (here, there) in pairs if not is_kept(here, there)]
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
        check(len(told) == 1 and told[0]["to"] == "unix:" + new and told[0]["evicted"] == evictions and not told[0]["restarted"] and not told[0]["flushed"], f"told: {told}")
        for server in servers:
            server.kill()
            server.wait()


def to_proxy():
    """It closes the connection on which it is asked for statistics, and has several servers behind it."""
    with tempfile.TemporaryDirectory() as directory:
        paths = [os.path.join(directory, name) for name in ("old", "behind1", "behind2")]
        processes = [start_memcached(path) for path in paths]
        proxy, configuration = (os.path.join(directory, name) for name in ("proxy", "proxy.yml"))
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(f"alpha:\n  listen: {proxy} 0600\n  hash: fnv1a_64\n  distribution: ketama\n  timeout: 5000\n  servers:\n")
            file.writelines(f"  - {path}:1 {os.path.basename(path)}\n" for path in paths[1:])
        # Its statistics, for which there is no switch to turn them off.
        address = own_address()
        processes.append(subprocess.Popen(["nutcracker", "-c", configuration, "-a", address], stdin=subprocess.DEVNULL,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        while not listens(proxy) and processes[-1].poll() is None:
            time.sleep(0.002)
        store(paths[0], 20)
        for counted in ("copied", "already"):
            done = subprocess.run([mcds, "-s", "unix:" + paths[0], "--timeout", "10s", "ring", "move", "--to", "unix:" + proxy],
                                  capture_output=True, text=True, check=False)
            summary = json.loads(done.stdout.splitlines()[-1])
            check(done.returncode == 0 and summary[counted] == ITEMS and summary["evicted"] is None, f"to a proxy, {counted}: {summary} {done.stderr}")
        check(sum(map(count, paths[1:])) == ITEMS, "not all are behind the proxy")
        for process in processes:
            process.kill()
            process.wait()


def restarted():
    """Between two runs. The journal said of what was lost that it was there; and of what was loaded anew into the old server, in the same order,
    that it was unchanged, for its cas uniques were the same again."""
    with tempfile.TemporaryDirectory() as directory:
        old, new, journal = (os.path.join(directory, name) for name in ("old", "new", "journal"))
        servers = {path: start_memcached(path) for path in (old, new)}

        def restart(path):
            servers[path].kill()
            servers[path].wait()
            servers[path] = start_memcached(path)

        def store_all(value):
            with connected(old) as file:
                exchange(file, b"".join(b"set key%d 0 0 %d\r\n%s\r\n" % (i, len(value), value) for i in range(100)), b"version")

        def move(*options):
            command = [mcds, "-s", "unix:" + old, "ring", "move", "--to", "unix:" + new, "--journal", journal, *options]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            return done.returncode, lines[-1], [line["lost"] for line in lines if "lost" in line]

        store_all(b"first")
        status, summary, _ = move()
        check(status == 0 and summary["copied"] == 100, f"the first run: {status} {summary}")
        restart(new)
        status, summary, lost = move("--again")
        check(status == 2 and lost == [100] and count(new) == 0, f"a new server was restarted: {status} {summary} {lost}")
        status, summary, lost = move()
        check(status == 0 and not lost and count(new) == 100, f"copied again after a restart: {status} {summary} {lost}")
        with connected(new) as file:
            exchange(file, b"flush_all\r\n", b"version")
        status, summary, lost = move("--again")
        check(status == 2 and lost == [100], f"a new server was flushed: {status} {summary} {lost}")
        status, summary, lost = move()
        check(status == 0 and summary["copied"] == 100, f"copied again after it was flushed: {status} {summary} {lost}")
        status, summary, lost = move("--again")
        check(status == 0 and summary["already"] == 100 and not lost, f"nothing has happened since: {status} {summary} {lost}")
        restart(old)
        store_all(b"later")
        status, summary, lost = move("--again")
        check(status == 0 and summary["updated"] == 100 and not lost, f"the old server was restarted: {status} {summary} {lost}")
        for server in servers.values():
            server.kill()
            server.wait()


def main():
    with ThreadPoolExecutor(6) as pool:
        futures = [pool.submit(stopped, which) for which in ("mover", "new server", "old server")]
        futures += [pool.submit(target) for target in (short_of_memory, to_proxy, restarted)]
        # What one raises is raised here.
        for future in futures:
            future.result()


if __name__ == "__main__":
    main()
    finish()
