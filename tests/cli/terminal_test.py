#!/usr/bin/env python3
"""What takes long shows its progress on a terminal, and nothing where standard error is a pipe; errors on a terminal are plain.

Every verb runs on a server whose replies come a few bytes at a time, so that each takes more than a second. Usage:
terminal_test.py BUILD_DIR
"""
import concurrent.futures
import contextlib
import os
import pty
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import MCDS, clean_environment
from real_servers import Servers
from stub import Stub

PIECE, PAUSE_S, ITEMS = 256, 0.04, 120
LINES = b"".join(b"line%d\n" % number for number in range(8))

# Verbs by what they count; with `-` their input comes slowly, and not from a slow server.
MEASURING = ["doctor --for 2s", "capacity --for 2s"]
WAITING = {"waiting for the lock": ["lock acquire held -w 2s", "lock run held -w 2s -- true"], "waiting for the next use": ["counter limit few --max 1 --per 4s --sliding -w 9s"],
           "waiting for the rebuild": ["cache run slow --ttl 1m -w 2s -- true"], "dropping": ["table drop doomed", "eventlog drop doomed"]}
COUNTING = {
    "events": ["item hot --for 2s", "eventlog fetch log"],
    "keys": ["item list", "item list --prefix k -o value", "item list --by-prefix", "item remove --prefix k --dry-run", "item save -",
             "item remove --prefix k --yes --on {slow} --rate 50/s", "ring --live", "ring diff --to unix:/nowhere --live",
             "ring move --to unix:/nowhere --dry-run", "where --probe --live", "where --prune --live --dry-run", "doctor --live --for 1s", "-s {slow},{real} where --guess"],
    "items": ["item load {saved} --rate 50/s"],
    "members": ["table count t", "table fetch t -o value", "table check t"],
    "fields": ["hash count h", "hash fetch h", "hash fields h"],
    "lines": ["counter incr -", "where -", "table has t -", "item get -", "lock show -", "visitors hit site --id -", "eventlog put other -"],
}


def slowly(path):
    """Serves a connection to the server at `path`."""
    def serve(client):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(path)
            server.setblocking(False)
            client.setblocking(False)
            while True:
                for source, target in ((client, server), (server, client)):
                    try:
                        data = source.recv(PIECE if source is server else 1 << 16)
                    except BlockingIOError:
                        continue
                    if not data:
                        return
                    target.setblocking(True)
                    target.sendall(data)
                    target.setblocking(False)
                time.sleep(PAUSE_S)
    return serve


def environment(servers):
    return clean_environment(MCDS_SERVERS=servers)


def feed(process):
    for line in LINES.splitlines(keepends=True):
        process.stdin.write(line)
        process.stdin.flush()
        time.sleep(5 * PAUSE_S)
    process.stdin.close()


def run(words, servers, terminal):
    """What it writes to standard error, a terminal or a pipe; its answers go nowhere."""
    master, slave = pty.openpty() if terminal else os.pipe()
    reads = "-" in words
    process = subprocess.Popen([MCDS, "--timeout", "20s", *words], stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=slave, env=environment(servers))
    os.close(slave)
    with concurrent.futures.ThreadPoolExecutor(1) as feeder:
        if reads:
            feeder.submit(feed, process)
        seen = b""
        while True:
            try:
                data = os.read(master, 1 << 16)
            except OSError:  # a terminal that nobody has open any more
                break
            if not data:
                break
            seen += data
    process.wait()
    os.close(master)
    return seen.decode()


def check_progress(line, pattern, servers):
    words = line.split()
    if words[:2] == ["counter", "limit"]:
        run(words, servers, False)
    seen = run(words, servers, True)
    check(re.search(rf"\r{pattern}.*\x1b\[K", seen), f"mcds {line}: no progress on a terminal: {seen!r}")
    seconds = re.findall(r"measuring, (\d+) s left", seen)
    check(seconds == sorted(seconds, reverse=True), f"mcds {line}: the time that is left grows: {seen!r}")
    left = re.split(r"[\r\n]", seen.replace("\r\x1b[K", "\r"))
    check(not re.search(pattern, left[-1]), f"mcds {line}: the progress stays: {seen!r}")
    quiet = run(words, servers, False)
    check("\r" not in quiet and "\x1b" not in quiet, f"mcds {line}: progress in a pipe: {quiet!r}")


def check_errors(servers):
    for words in (["item", "get", "bad key"], ["-o", "json", "item", "get", "bad key"], ["kounter"]):
        plain, json = run(words, servers, True), run(words, servers, False)
        check(re.fullmatch(r"mcds: [^\r\n{]+\r\n", plain), f"mcds {words}: an error on a terminal: {plain!r}")
        check(re.fullmatch(r'\{"error":\{"code":"usage",[^\n]+\}\n', json), f"mcds {words}: an error in a pipe: {json!r}")


def fill(server, saved):
    rows = "".join(f"member{number:04}\tvalue\n" for number in range(ITEMS)).encode()
    for words in ("hash set h -", "table add t -", "eventlog put log -", "table add doomed -", "eventlog put doomed -"):
        subprocess.run([MCDS, *words.split()], env=environment(server), input=rows, stdout=subprocess.DEVNULL, check=True, timeout=60)
    for number in range(ITEMS):
        subprocess.run([MCDS, "item", "set", f"key{number}", "value"], env=environment(server), stdout=subprocess.DEVNULL, check=True, timeout=60)
    subprocess.run([MCDS, "item", "save", saved], env=environment(server), stdout=subprocess.DEVNULL, check=True, timeout=60)


def main():
    # A server lists its keys for one client at a time, so what lists has a server each.
    with Servers(1) as real, Servers(len(COUNTING["keys"])) as listed, tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stubs:
        path, saved = os.path.join(directory, "slow"), os.path.join(directory, "saved")
        slow = "unix:" + path
        fill(real.list, saved)
        for one in listed.paths:
            subprocess.run([MCDS, "item", "load", saved], env=environment("unix:" + one), stdout=subprocess.DEVNULL, check=True, timeout=60)
            stubs.enter_context(Stub(slowly(one), one + "-slow"))
        cases = [(line, r"measuring, \d+ s left", slow) for line in MEASURING]
        for unit, lines in COUNTING.items():
            for number, line in enumerate(lines):
                server = real.list if unit == "lines" else f"unix:{listed.paths[number]}-slow" if unit == "keys" else slow
                cases.append((line.format(slow=server, real=real.list, saved=saved), rf"(?:\[[#.]+\] \d+%  )?\d+ {unit}", server))
        cases += [(line, rf"{what}, \d+s", slow if what == "dropping" else real.list) for what, lines in WAITING.items() for line in lines]
        subprocess.run([MCDS, "lock", "acquire", "held", "--ttl", "5m"], env=environment(real.list), stdout=subprocess.DEVNULL, check=True, timeout=60)
        builder = subprocess.Popen([MCDS, "cache", "run", "slow", "--ttl", "5m", "--", "sleep", "300"], env=environment(real.list))
        silent = os.path.join(directory, "silent")
        cases.append(("lock acquire free", r"waiting for the lock, \d+s", "unix:" + silent))  # one request that gets no reply
        with Stub(slowly(real.paths[0]), path), Stub(lambda client: time.sleep(3), silent), concurrent.futures.ThreadPoolExecutor(16) as runs:
            list(runs.map(lambda case: check_progress(*case), cases))
        builder.terminate()
        builder.wait()
        check_errors(real.list)
    finish()


if __name__ == "__main__":
    main()
