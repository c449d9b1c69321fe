"""Five clients at a time on three servers with three copies. Single clients are cut off from single servers, requests and replies are
lost or late, clients and servers stand still, one server at a time comes back empty. Some order must explain what each was told."""
import collections
import os
import random
import signal
import threading
import time

from partitioned import World
from subjects import KINDS, said, shares

CLIENTS, LAST = 5, 5  # and the group of who looks when it is over
TIMEOUT, PATIENT = "250ms", "5s"
CHANCE = 0.02  # of a fault, for a piece of data
LIVE = 4  # subjects at a time
LIFE, DOUBTS = 16, 3  # of a subject: commands, and unknown outcomes
TROUBLED_S, CALM_S, BRIEF_S = 2.0, 0.6, 0.3


class Partitions:
    def __init__(self, mcds, kind, seed):
        self.mcds, self.kind = mcds, kind
        self.random = random.Random(f"{kind} {seed}")
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.serial, self.live, self.over = 0, [], []
        self.running = {}
        self.counts = {"faults": collections.Counter(), "after": collections.Counter()}
        self.ops, self.stories, self.restarts = 0, [], 0
        self.ended = self.troubled = False

    def run(self, least):
        """Until so many commands have run."""
        with World(self.mcds, groups=CLIENTS + 1) as self.world:
            self.world.proxy.random = self.random
            workers = [threading.Thread(target=self.work, args=(client, random.Random(f"{client} {self.random.random()}")))
                       for client in range(CLIENTS)]
            for worker in workers:
                worker.start()
            while self.ops < least:
                self.gate.set()
                self.trouble()
                self.calm()
                self.restart()
            self.ended = True
            self.gate.set()
            for worker in workers:
                worker.join()
            self.live, self.over = [], self.over + self.live
            self.close()
        return self

    def subject(self, dice):
        if len(self.live) < LIVE:
            self.serial += 1
            name = f"{self.kind}{self.serial}"
            self.live.append(KINDS[self.kind](f"{name}.{self.kind}{self.serial // 9}" if self.kind in ("hash", "table") else name))
        return dice.choice(self.live)

    def work(self, client, dice):
        while not self.ended:
            self.gate.wait()
            with self.lock:
                if not self.gate.is_set():
                    continue
                subject = self.subject(dice)
                words = subject.draw(dice)
                when = "faults" if self.troubled else "after"
                op = self.running[client] = self.world.begin(client, words, TIMEOUT)
            self.world.end(op)
            with self.lock:
                del self.running[client]
                self.ops += 1
                self.counts[when].update(shares([op]))
                subject.record(op)
                doubts = sum(not one.done for one in subject.ops)
                if subject in self.live and (len(subject.ops) > LIFE or doubts > DOUBTS):
                    self.live.remove(subject)
                    self.over.append(subject)

    def trouble(self):
        """Every client lacks a server, sometimes two, each another one."""
        self.troubled, self.world.proxy.chance = True, CHANCE
        end = time.monotonic() + TROUBLED_S
        while time.monotonic() < end:
            links = self.world.links[self.random.randrange(CLIENTS)]
            away = self.random.sample(range(3), self.random.choice((0, 1, 1, 1, 1, 1, 1, 2)))
            for number, link in enumerate(links):
                self.world.proxy.set_mode(link, self.random.choice(("refuse", "refuse", "silent")) if number in away else "open")
            choice = self.random.random()
            if choice < 0.15:
                self.freeze(self.world.processes[self.random.randrange(3)].pid)
            elif choice < 0.4:
                self.freeze_client()
            time.sleep(self.random.uniform(0, 0.15))

    def freeze(self, pid):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(self.random.uniform(0.02, 0.3))
        os.kill(pid, signal.SIGCONT)

    def freeze_client(self):
        with self.lock:
            op = self.running.get(self.random.randrange(CLIENTS))
            if op is None:
                return
            op.process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(0.02, 0.3))
        op.process.send_signal(signal.SIGCONT)

    def calm(self):
        """Everybody reaches everything again."""
        for links in self.world.links.values():
            for link in links:
                self.world.proxy.set_mode(link, "open")
        self.world.proxy.honest()
        time.sleep(BRIEF_S)
        self.troubled = False
        time.sleep(CALM_S)

    def pause(self):
        self.gate.clear()
        while self.running:
            time.sleep(0.002)
        self.world.proxy.honest()
        time.sleep(0.02)

    def restart(self):
        """What is over is judged. Then a server comes back empty while clients work, and what it had is read."""
        self.pause()
        self.close()
        self.gate.set()
        time.sleep(0.05)
        self.world.restart(self.random.randrange(3))
        self.restarts += 1
        time.sleep(BRIEF_S)
        self.pause()
        for subject in self.live:
            self.look(subject)

    def look(self, subject):
        for words in (subject.ask_all(), subject.look()):
            op = self.world.run(LAST, words, PATIENT)
            subject.record(op)
            if not op.done:
                subject.notes.append(f"{' '.join(words)} without any fault: {op.exit} {op.err.strip()}")

    def close(self):
        for subject in self.over:
            self.look(subject)
            found = subject.wrong()
            if found:
                ops = sorted(subject.ops, key=lambda op: op.start)
                self.stories.append("\n".join([f"{', '.join(found)}:"] + [
                    f"  {op.start - ops[0].start:7.3f} … {op.end - ops[0].start:7.3f} client {op.worker} {' '.join(op.words)}: {said(op)}"
                    for op in ops]))
        self.over = []
