"""One client after the other on three servers, each cut off at some of its requests, deaf to replies, late or halted between two
round trips, on purpose; so that a seed happens again exactly. What they were told must be explained by some order."""
import random
import time

from partitioned import USUAL
from subjects import KINDS, said

SHORT = "120ms"  # timeout of a client whose requests are late


class Sequence:
    """Some commands for one subject, in a world that is nobody else's meanwhile."""

    def __init__(self, world, kind, seed, length=7):
        self.world, self.length = world, length
        self.dice = random.Random(f"{kind} {seed}")
        self.subject = KINDS[kind](f"f{seed}.{kind}{seed // 8}" if kind in ("hash", "table") else f"{kind}{seed}")
        self.halted = []  # commands between two of their round trips, with the numbers of commands that they still wait for
        self.late = []  # groups some of whose requests are still to come
        self.free = list(world.links)
        self.lines = []

    def run(self):
        for _ in range(self.length):
            self.step()
            self.halted = [(op, left - 1) for op, left in self.halted]
            for op, left in self.halted[:]:
                if left <= 0:
                    self.go_on(op)
        while self.halted:
            self.go_on(self.halted[0][0])
        while self.late:
            self.arrive()
        # Everybody sees the same, whichever server they lack.
        away = [0, 1, 2]
        self.dice.shuffle(away)
        for server in [*away, None]:
            self.command(self.subject.look(), {} if server is None else {server: ("cut", 1)})
        return self

    def step(self):
        choice = self.dice.random()
        if choice < 0.04 and not self.halted:
            return self.restart()
        if choice < 0.12 and self.late:
            return self.arrive()
        words = self.subject.draw(self.dice)
        if choice < 0.45:
            plan = {}
        elif choice < 0.6:
            plan = {self.dice.randrange(3): ("cut", 1)}
        elif choice < 0.85:
            kind = self.dice.choice(("cut", "cut", "deaf"))
            plan = {server: (kind, self.dice.randrange(1, 6)) for server in self.dice.sample(range(3), self.dice.choice((1, 1, 2, 2)))}
        elif choice < 0.93 and len(self.late) < 3:
            plan = {server: ("hold", self.dice.randrange(1, 6)) for server in self.dice.sample(range(3), self.dice.choice((1, 2)))}
        elif len(self.halted) < 2:
            return self.halt(words, self.dice.randrange(2, 6), self.dice.randrange(1, 4))
        else:
            plan = {}
        self.command(words, plan)

    def command(self, words, plan):
        group = self.free.pop(0)
        for server, (kind, piece) in plan.items():
            self.world.proxy.plan(self.world.links[group][server], kind, piece)
        late = any(kind == "hold" for kind, _ in plan.values())
        op = self.world.run(group, words, SHORT if late else USUAL)
        if any(link.held for link in self.world.links[group]):
            self.late.append(group)
        else:
            self.world.reach_all(group)
            self.free.append(group)
        self.record(op, plan)

    def halt(self, words, piece, left):
        """The command stands before its piece-th round trip until `left` others have run."""
        op = self.world.begin_halted(self.free.pop(0), words, piece)
        if op.process.poll() is None:
            self.halted.append((op, left))
            self.lines.append(f"  {' '.join(words)} halts before request {piece}")
        else:
            self.go_on(op)

    def go_on(self, op):
        self.halted = [(one, left) for one, left in self.halted if one is not op]
        self.record(self.world.go_on(op), {})
        self.free.append(op.worker)

    def arrive(self):
        group = self.late.pop(0)
        for link in self.world.links[group]:
            self.world.proxy.let_go(link)
        self.world.reach_all(group)
        # Groups are used again in turn: what was let go has arrived by then.
        self.free.append(group)
        self.lines.append(f"  what client {group} sent late arrives")

    def restart(self):
        """A server comes back empty when nothing is under way, and a read has all of the others."""
        while self.late:
            self.arrive()
        time.sleep(0.02)
        server = self.dice.randrange(3)
        self.world.restart(server)
        self.lines.append(f"  server {server} restarts empty")
        for words in (self.subject.ask_all(), self.subject.look()):
            self.command(words, {})

    def record(self, op, plan):
        how = ", ".join(f"server {server}: {kind} at {piece}" for server, (kind, piece) in sorted(plan.items()))
        self.lines.append(f"  {' '.join(op.words)}{' (' + how + ')' if how else ''}: {said(op)}")
        self.subject.record(op)

    def wrong(self):
        found = self.subject.wrong()
        return f"{', '.join(found)}:\n" + "\n".join(self.lines) if found else None
