#!/usr/bin/env python3
"""How many round trips each verb makes, one after the other. Usage: trips_test.py BUILD_DIR

Clients reach three servers through a proxy that lets nothing pass until both sides are quiet: all that is sent meanwhile, over
any connection, is one trip. So the numbers depend on what waits for what, and not on the speed of the machine.
"""
import glob
import os
import selectors
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from real_servers import Servers

QUIET = 0.02  # seconds in which nobody sends anything, and nobody waits for the processor
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")


def is_busy(process):
    """Whether a thread of this process runs, or would."""
    for stat in glob.glob(f"/proc/{process.pid}/task/*/stat"):
        try:
            with open(stat, encoding="utf-8") as file:
                if file.read().rpartition(")")[2].split()[0] in "RD":
                    return True
        except OSError:
            pass  # it has just ended
    return False


class LockStep:
    def __init__(self, upstreams, directory, processes):
        self.selector, self.trips, self.ended = selectors.DefaultSelector(), 0, False
        self.processes, self.client = processes, None
        self.paths = [os.path.join(directory, f"p{number}") for number in range(len(upstreams))]
        for path, upstream in zip(self.paths, upstreams):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path)
            listener.listen(64)
            self.selector.register(listener, selectors.EVENT_READ, ("listener", upstream))
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _accept(self, listener, upstream):
        client, server = listener.accept()[0], socket.socket(socket.AF_UNIX)
        server.connect(upstream)
        self.selector.register(client, selectors.EVENT_READ, ("client", server))
        self.selector.register(server, selectors.EVENT_READ, ("server", client))

    def _gather(self, side):
        """What one side sends until it is quiet, as (destination, data)."""
        gathered = []
        while True:
            ready = [(key.fileobj, *key.data) for key, _ in self.selector.select(QUIET)]
            if not ready and not any(map(is_busy, [*self.processes, self.client] if self.client else [])):
                if gathered or side == "client" or self.ended:
                    return gathered
            for source, kind, to in ready:
                if kind == "listener":
                    self._accept(source, to)
                    continue
                data = source.recv(1 << 20)
                if data:
                    gathered.append((to, data))
                else:
                    for end in (source, to):
                        self.selector.unregister(end)
                        end.close()
                    gathered = [(place, rest) for place, rest in gathered if place.fileno() >= 0]
                    if side == "server" and not any(key.data[0] == "server" for key in self.selector.get_map().values()):
                        return gathered

    def _run(self):
        while not self.ended:
            requests = self._gather("client")
            if not requests:
                continue
            self.trips += 1
            for to, data in requests:
                to.sendall(data)
            for to, data in self._gather("server"):
                to.sendall(data)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()

    def end(self):
        self.ended = True
        self.thread.join()


# In this order, each with what is there by then: (trips, words, form of 2,000 lines of standard input). A batch that takes more than
# a second looks once more for other numbers of copies.
VERBS = [
    (4, "counter incr c", None),
    (1, "counter incr c", None),
    (1, "counter get c", None),
    (1, "counter decr c", None),
    (2, "counter set c 5", None),
    (2, "counter take c", None),
    (2, "counter remove c", None),
    (4, "counter incr x --exact", None),
    (2, "counter incr x --exact", None),
    (2, "counter limit l --max 5 --per 1m", None),
    (1, "counter limit l --max 5 --per 1m", None),
    (1, "lock acquire a", None),
    (1, "lock show a", None),
    (2, "lock release a --force", None),
    (3, "lock run r -- true", None),
    (1, "visitors hit v", None),
    (1, "visitors hit v", None),
    (2, "visitors hit v --id bob", None),
    (2, "visitors value v", None),
    (5, "eventlog put e x", None),
    (1, "eventlog put e x", None),
    (1, "eventlog fetch e", None),
    (4, "array add a x", None),
    (1, "array add a x", None),
    (1, "array fetch a", None),
    (1, "array remove a x", None),
    (6, "table add t a", None),
    (6, "table add t b", None),
    (1, "table add t a", None),
    (1, "table has t a", None),
    (2, "table fetch t", None),
    (2, "table count t", None),
    (1, "table remove t a", None),
    (6, "hash set h f v", None),
    (6, "hash set h g v", None),
    (1, "hash set h f w", None),
    (1, "hash get h f", "f{0}"),
    (2, "hash fetch h", None),
    (1, "hash remove h f", None),
    ((5, 6), "cache run k -- true", None),  # one more if the lock has just shown that its server, here the entry's, has cas
    (1, "cache run k -- true", None),
    (2, "item set z 1", None),
    (1, "item get z", None),
    (4, "item list", None),
    (1, "item remove z", None),
    (1, "where counter:x --probe", None),
    (2, "servers", None),
    (5, "--copies 3 counter incr cc", None),
    (3, "--copies 3 counter incr cc", None),
    (1, "--copies 3 counter get cc", None),
    (7, "--copies 3 hash set hh f v", None),
    (2, "--copies 3 hash set hh f w", None),
    (1, "--copies 3 hash get hh f", None),
    (7, "--copies 3 table add tt a", None),
    (2, "--copies 3 table add tt a", None),
    (10, "counter incr -", "c{0}"),
    (2, "counter incr -", "c{0}"),
    (1, "counter get -", "c{0}"),
    (9, "table add tb -", "member-{0}"),
    (3, "table add tb -", "member-{0}"),
    (4, "table add tb one-more", None),
    (3, "table has tb -", "member-{0}"),
    (3, "table remove tb -", "member-{0}"),
    (9, "hash set hb -", "f{0}\tv{0}"),
    (3, "hash set hb -", "f{0}\tv{0}"),
    (4, "hash set hb one more", None),
    (10, "--copies 3 table add tt -", "member-{0}"),
    (4, "--copies 3 table add tt one-more", None),
    (3, "hash get hb -", "f{0}"),
    (5, "eventlog put eb -", "event {0}"),
    (5, "array add ab -", "x{0}"),
    (5, "item get -", "counter:c{0}"),
    (15, "--copies 3 counter incr -", "d{0}"),
    (9, "--copies 3 counter incr -", "d{0}"),
    ((15, 16, 17), "eventlog drop e", None),  # by the minute: its 65 chunks may begin or end a directory
    (3, "array drop a", None),
    (9, "table drop t", None),
    (9, "hash drop h", None),
]
BATCH = 2000


def main():
    with Servers(3, "-m", "64") as servers:
        proxy = LockStep(servers.paths, servers.directory, servers.processes)
        try:
            for expected, words, form in VERBS:
                lines = "".join(form.format(number) + "\n" for number in range(BATCH)) if form else ""
                before = proxy.trips
                with subprocess.Popen([mcds, "-s", ",".join("unix:" + path for path in proxy.paths), *words.split()], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                    proxy.client = process
                    _, error = process.communicate(lines, timeout=120)
                    proxy.client = None
                trips = proxy.trips - before
                check(trips in (expected if isinstance(expected, tuple) else (expected, expected + bool(form))) and process.returncode in (0, 1),
                      f"{words}: {trips} trips, expected {expected}; exit code {process.returncode} {error[-200:]}")
        finally:
            proxy.end()
    finish()


main()
