#!/usr/bin/env python3
"""A client that stood still (Ctrl-Z, a busy machine) for longer than its timeout while the reply came takes the reply: it is not late.

Usage: stopped_client_test.py BUILD_DIR
"""
import os
import select
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from program import MCDS, run
from real_servers import Servers
from stub import Stub

STILL = 2.5  # seconds, of a timeout of 1


class Relay:
    """Passes on what clients and the server say; whoever asks `for` something is stopped until its reply has been
    there for a while."""

    def __init__(self, server, asks):
        self.server, self.asks, self.stopped = server, asks, None

    def __call__(self, connection):
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server)
            while True:
                text = connection.recv(65536)
                if not text:
                    return
                still = self.asks in text
                if still:
                    for pid in self.of_client():
                        os.kill(pid, signal.SIGSTOP)
                server.sendall(text)
                connection.sendall(server.recv(1 << 20))
                while select.select([server], [], [], 0.05)[0]:  # the rest of the reply
                    connection.sendall(server.recv(1 << 20))
                if still:
                    time.sleep(STILL)
                    for pid in self.of_client():
                        os.kill(pid, signal.SIGCONT)

    def of_client(self):
        """It and its children."""
        pids = [self.stopped.pid]
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as stat:
                        if int(stat.read().rsplit(")", 1)[1].split()[1]) == self.stopped.pid:
                            pids.append(int(entry))
                except OSError:
                    pass
        return pids


def stands_still(directory, server, number, words, asks):
    path = os.path.join(directory, f"relay{number}")
    relay = Relay(server, asks)
    with Stub(relay, path):
        relay.stopped = subprocess.Popen([MCDS, "--timeout", "1s", "-s", f"unix:{path}", *words], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        out, err = relay.stopped.communicate(timeout=60)
    check(relay.stopped.returncode == 0 and out != "", f"mcds {' '.join(words)}: {relay.stopped.returncode} {out} {err}")


with Servers(1, "-m", "16") as servers:
    folder, real = servers.directory, servers.paths[0]
    run(servers.list, "item", "set", "page", "1", check=True)
    run(servers.list, "counter", "incr", "hits", check=True)
    stands_still(folder, real, 0, ["counter", "incr", "hits"], b"hits")
    stands_still(folder, real, 1, ["item", "get", "page"], b"page")
    stands_still(folder, real, 2, ["item", "list"], b"metadump")
finish()
