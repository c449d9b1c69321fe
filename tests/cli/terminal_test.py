#!/usr/bin/env python3
"""What takes long shows its progress on a terminal, and nothing where standard error is a pipe; errors on a terminal are plain.

Every verb runs on a server whose replies come a few bytes at a time, so that each takes more than a second. Usage:
terminal_test.py BUILD_DIR
"""
import concurrent.futures
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
from real_servers import Servers
from stub import Stub

MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
PIECE, PAUSE_S, ITEMS = 256, 0.04, 120
LINES = b"".join(b"line%d\n" % number for number in range(8))

# Verbs by what they count; with `-` their input comes slowly, and not from a slow server.
MEASURING = ["doctor --for 2s", "capacity --for 2s"]
COUNTING = {
    "events": ["item hot --for 2s", "eventlog fetch log"],
    "keys": ["item list", "item list --prefix k -o value", "item list --by-prefix", "item remove --prefix k --dry-run", "item save -",
             "item remove --prefix k --yes --on {slow} --rate 50/s", "ring --live", "ring diff --to unix:/nowhere --live",
             "ring move --to unix:/nowhere --dry-run", "where --probe --live", "where --prune --live --dry-run", "-s {slow},{real} where --guess"],
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
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("MCDS_", "MEMCACHED_", "XDG_"))}
    return {**kept, "MCDS_SERVERS": servers}


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
    seen = run(words, servers, True)
    check(re.search(rf"\r{pattern}.*\x1b\[K", seen), f"mcds {line}: no progress on a terminal: {seen!r}")
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
    for words in ("hash set h -", "table add t -", "eventlog put log -"):
        subprocess.run([MCDS, *words.split()], env=environment(server), input=rows, stdout=subprocess.DEVNULL, check=True, timeout=60)
    for number in range(ITEMS):
        subprocess.run([MCDS, "item", "set", f"key{number}", "value"], env=environment(server), stdout=subprocess.DEVNULL, check=True, timeout=60)
    subprocess.run([MCDS, "item", "save", saved], env=environment(server), stdout=subprocess.DEVNULL, check=True, timeout=60)


def main():
    with Servers(1) as real, tempfile.TemporaryDirectory() as directory:
        path, saved = os.path.join(directory, "slow"), os.path.join(directory, "saved")
        slow = "unix:" + path
        fill(real.list, saved)
        cases = [(line, r"measuring, \d+ s left", slow) for line in MEASURING]
        cases += [(line.format(slow=slow, real=real.list, saved=saved), rf"(?:\[[#.]+\] \d+%  )?\d+ {unit}", real.list if unit == "lines" else slow)
                  for unit, lines in COUNTING.items() for line in lines]
        with Stub(slowly(real.paths[0]), path), concurrent.futures.ThreadPoolExecutor(16) as runs:
            list(runs.map(lambda case: check_progress(*case), cases))
        check_errors(real.list)
    finish()


if __name__ == "__main__":
    main()
