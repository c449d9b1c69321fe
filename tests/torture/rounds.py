"""One structure, servers of its own, clients, and what happens to both; then what its history says."""
import collections
import glob
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "support"))
from history import Op
from proxy import Proxy
from program import clean_environment
from real_servers import connected, end, start_memcached
from structure import SKEW
from structures import KINDS, Lock

WORKERS = 6
TIMEOUT = 0.3  # of mcds, for one reply
PATIENCE = 30  # seconds after which a run hangs
CHANCE = 0.03  # of a fault, for a piece of data
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)

# More items of each of the small sizes than a page of 1 MiB holds, and some of them deleted again.
JUNK = b"".join(b"set junk%d.%d 0 0 %d noreply\r\n%s\r\n" % (size, i, size, b"x" * size)
                for size in (20, 45, 75, 115, 160, 220) for i in range((1 << 20) // (size + 70)))
JUNK += b"".join(b"delete junk%d.%d noreply\r\n" % (size, i) for size in (20, 45, 75, 115, 160, 220) for i in range(3)) + b"mn\r\n"


class Server:
    def __init__(self, path, flags):
        self.path, self.flags = path, flags
        self.process = start_memcached(path, *flags)
        self.stopped = False

    def stop(self, seconds):
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        end(self.process)

    def start(self):
        self.process = start_memcached(self.path, *self.flags)


class Round:
    def __init__(self, mcds, kind, copies, seed, seconds, short=False, planted=None):
        self.mcds, self.copies, self.seed, self.seconds, self.short, self.planted = mcds, copies, seed, seconds, short, planted
        self.folder = tempfile.TemporaryDirectory(prefix="mcds-torture.")
        self.directory = self.folder.name
        self.structure = KINDS[kind](copies, self.directory)
        self.random = random.Random(seed)
        self.ops, self.faults = [], collections.Counter()
        self.lock = threading.Lock()
        self.gate = threading.Event()
        self.running = 0
        self.ended = False
        self.usual = 0.02  # seconds that a command takes on this machine, as last seen: who is killed dies within them
        self.wrong = []

    def run(self):
        flags = self.structure.short if self.short else ("-m", "64")
        self.servers = [Server(os.path.join(self.directory, f"s{i}"), flags) for i in range(3 if self.copies == 1 else 4)]
        self.proxy = Proxy(random.Random(self.seed + 1))
        groups = [*range(WORKERS), "last"]
        self.links = {group: [self.proxy.link(os.path.join(self.directory, f"g{group}.{i}"), server.path)
                              for i, server in enumerate(self.servers)] for group in groups}
        try:
            if self.short:
                self.fill()
            if isinstance(self.structure, Lock) and self.copies > 1:
                time.sleep(Lock.TTL + 1.5)  # servers that came up just now have no vote
            self.zero = time.time()
            self.torture()
            self.settle()
            for words in self.structure.last():
                self.insist(words)
        finally:
            self.proxy.close()
            for server in self.servers:
                server.kill()
            self.faults.update(self.proxy.counts)
        ops = sorted(self.ops, key=lambda op: op.start)
        self.wrong += [("broken", f"{op.words} at {op.start:.4f}: {op.broken()}: {op.err}") for op in ops if op.broken()]
        self.wrong += list(self.structure.check(ops))
        self.folder.cleanup()
        return self

    def torture(self):
        self.proxy.chance = CHANCE
        self.gate.set()
        workers = [threading.Thread(target=self.work, args=(worker, random.Random(f"{self.seed} {worker}"))) for worker in range(WORKERS)]
        for worker in workers:
            worker.start()
        end = time.monotonic() + self.seconds
        forgot = time.monotonic()
        while time.monotonic() < end:
            time.sleep(self.random.uniform(0, 0.3))
            if self.copies > 1 and self.structure.forgets and time.monotonic() - forgot > 3 and self.random.random() < 0.3:
                self.forget()
                forgot = time.monotonic()
            else:
                self.trouble()
        self.ended = True
        self.gate.set()
        for worker in workers:
            worker.join()

    def trouble(self):
        """One fault of a server, or between one client and one server."""
        server = self.random.randrange(len(self.servers))
        kind = self.random.choice(("stopped shortly", "stopped long", "cut off", "cut off", "refused", "none"))
        if kind == "none":
            return
        self.faults[kind] += 1
        if kind.startswith("stopped"):
            self.servers[server].stop(self.random.uniform(0.02, 0.2) if kind == "stopped shortly" else self.random.uniform(2, 4) * TIMEOUT)
            return
        groups = self.links if kind == "refused" else [self.random.randrange(WORKERS)]
        links = [self.links[group][server] for group in groups]
        for link in links:
            self.proxy.set_mode(link, "refuse" if kind == "refused" else self.random.choice(("refuse", "silent")))
        time.sleep(self.random.uniform(0.1, 0.6 if kind == "refused" else 1.5))
        for link in links:
            self.proxy.set_mode(link, "open")

    def forget(self):
        """A server is killed and comes back empty. Before and after it the copies are made whole."""
        self.quiet_heal()
        server = self.random.randrange(len(self.servers))
        self.faults["restarted empty"] += 1
        for links in self.links.values():
            self.proxy.set_mode(links[server], "refuse")
        self.servers[server].kill()
        time.sleep(self.random.uniform(0.05, 0.6))
        self.servers[server].start()
        for links in self.links.values():
            self.proxy.set_mode(links[server], "open")
        if isinstance(self.structure, Lock):
            time.sleep(Lock.TTL + 1.5)
        self.quiet_heal()
        self.proxy.chance = CHANCE

    def quiet_heal(self):
        """Nobody works but who heals. The workers go on without faults."""
        self.gate.clear()
        self.settle()
        for words in self.structure.heal():
            self.insist(words, worker="heal")
        self.gate.set()

    def settle(self):
        """All that was on its way has arrived."""
        while self.running:
            time.sleep(0.005)
        self.proxy.honest()
        time.sleep(0.05)

    def insist(self, words, worker="last"):
        """A machine with other work may be slow: then it is asked again. What is read from fewer copies than a majority must be
        written to others first, which a server without memory refuses."""
        for _ in range(5):
            op = self.execute(worker, words, None, "last", None, None, "3s")
            if op.done or (self.short and "out of memory" in op.err):
                return
        self.wrong.append(("broken", f"{words} without any fault: exit {op.exit} {op.err}"))

    def work(self, worker, dice):
        while not self.ended:
            self.gate.wait()
            with self.lock:
                if not self.gate.is_set():
                    continue
                self.running += 1
                words, tag = self.structure.command(dice, worker)
            kill = dice.uniform(0, 1.2 * self.usual) if dice.random() < 0.06 and tag != "cursor" else None
            skew = dice.uniform(-SKEW, SKEW) if FAKETIME and self.structure.skewed and dice.random() < 0.2 else None
            op = self.execute(worker, words, tag, worker, kill, skew)
            with self.lock:
                if not op.killed:
                    self.structure.ended(op)
                if op.done:
                    self.usual += 0.1 * (op.end - op.start - self.usual)
                self.running -= 1
            if dice.random() < 0.2:
                time.sleep(dice.uniform(0, 0.1))

    def execute(self, worker, words, tag, group, kill, skew, timeout=f"{int(TIMEOUT * 1000)}ms"):
        environment = clean_environment(LC_ALL="C.UTF-8", HOME=self.directory, MCDS_SERVERS=",".join(
            f"m{i}=unix:{link.path}" for i, link in enumerate(self.links[group])))
        if self.planted:
            environment["MCDS_PLANTED"] = self.planted
        if skew is not None:
            self.faults["clock shifted"] += 1
            environment.update(LD_PRELOAD=FAKETIME, FAKETIME=f"{skew:+.3f}", FAKETIME_DONT_FAKE_MONOTONIC="1")
        options = ["--timeout", timeout, "--connect-timeout", timeout, *(["--copies", str(self.copies)] if self.copies > 1 else [])]
        op = Op(worker, words, tag, time.time())
        process = subprocess.Popen([self.mcds, *options, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        try:
            out, err = process.communicate(timeout=PATIENCE if kill is None else kill)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            if kill is None:
                self.wrong.append(("broken", f"{words} takes more than {PATIENCE} s"))
            op.killed = process.returncode == -signal.SIGKILL
            self.faults["client killed"] += op.killed
        op.end, op.exit = time.time(), process.returncode
        op.out, op.err = out.decode("utf-8", "backslashreplace"), err.decode("utf-8", "backslashreplace")
        with self.lock:
            self.ops.append(op)
        return op

    def fill(self):
        """The small items' pages, to the last item; then a little room is made again, which the run soon uses up."""
        self.faults["memory short"] += len(self.servers)
        for server in self.servers:
            with connected(server.path) as file:
                file.write(JUNK)
                file.flush()
                while not file.readline().startswith(b"MN"):
                    pass

    def unavailable(self):
        """Seconds of the stretches of more than one second in which no command of anybody got an answer."""
        total, last = 0.0, self.zero
        for end in sorted(op.end for op in self.ops if op.done):
            if end - last > 1:
                total += end - last
            last = end
        return total

    def story(self):
        return "\n".join(op.story(self.zero) for op in sorted(self.ops, key=lambda op: op.start))
