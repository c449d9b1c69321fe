"""Servers whose single clients can be cut off from single servers, at the request that a test wants."""
import os
import random
import subprocess
import tempfile
import time

from history import Op
from proxy import Proxy
from program import clean_environment
from real_servers import end, flush, start_memcached

PATIENCE = 60  # seconds after which a command hangs
GROUPS = 12  # of clients with sockets of their own
USUAL, LONG = "5s", "20s"  # timeouts of a client whose requests arrive or are refused, and of one that is halted


class World:
    """Servers, and sockets of every group of clients to every server. The clients agree on the servers' names."""

    def __init__(self, mcds, copies=3, servers=3, groups=GROUPS):
        self.mcds, self.copies = mcds, copies
        self.folder = tempfile.TemporaryDirectory(prefix="mcds-copies.")
        self.paths = [os.path.join(self.folder.name, f"s{i}") for i in range(servers)]
        self.processes = [start_memcached(path, "-m", "64") for path in self.paths]
        self.proxy = Proxy(random.Random(0))
        self.links = {group: [self.proxy.link(os.path.join(self.folder.name, f"g{group}.{i}"), path)
                              for i, path in enumerate(self.paths)] for group in range(groups)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proxy.close()
        end(*self.processes)
        self.folder.cleanup()

    def begin(self, group, words, timeout=USUAL, copies=None, given=""):
        """A command that runs, with `given` as its standard input; end() waits for it."""
        environment = clean_environment(HOME=self.folder.name, MCDS_PLANTED=os.environ.get("MCDS_PLANTED", ""), MCDS_SERVERS=",".join(
            f"m{i}=unix:{link.path}" for i, link in enumerate(self.links[group])))
        op = Op(group, words, None, time.monotonic())
        with tempfile.TemporaryFile("w+", encoding="utf-8") as stdin:
            stdin.write(given)
            stdin.seek(0)
            options = ["--timeout", timeout, "--connect-timeout", timeout, "--copies", str(copies or self.copies)]
            op.process = subprocess.Popen([self.mcds, *options, *words], env=environment, stdin=stdin, stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE)
        return op

    def end(self, op):
        out, err = op.process.communicate(timeout=PATIENCE)
        op.end, op.exit = time.monotonic(), op.process.returncode
        op.killed = op.exit == -9
        op.out, op.err = out.decode("utf-8", "backslashreplace"), err.decode("utf-8", "backslashreplace")
        return op

    def run(self, group, words, timeout=USUAL, copies=None, given=""):
        return self.end(self.begin(group, words, timeout, copies, given))

    def begin_halted(self, group, words, piece, lacking=(), **more):
        """A command that stands before its piece-th request, whatever the server, until go_on(); or has ended before. It does not reach
        the servers it lacks."""
        links = self.links[group]
        for number, link in enumerate(links):
            self.proxy.plan(link, "hold", piece)
            if number in lacking:
                self.proxy.set_mode(link, "refuse")
        op = self.begin(group, words, LONG, **more)
        while op.process.poll() is None and not any(link.held for link in links):
            time.sleep(0.0005)
        return op

    def go_on(self, op):
        for link in self.links[op.worker]:
            self.proxy.let_go(link)
        self.end(op)
        self.reach_all(op.worker)
        return op

    def cut(self, group, servers):
        """Its clients reach the others only."""
        for number, link in enumerate(self.links[group]):
            self.proxy.plan(link)
            if number in servers:
                self.proxy.set_mode(link, "refuse")

    def flush(self):
        flush(*self.paths)

    def reach_all(self, group):
        for link in self.links[group]:
            self.proxy.plan(link)

    def restart(self, server):
        """It comes back empty."""
        end(self.processes[server])
        self.processes[server] = start_memcached(self.paths[server], "-m", "64")
