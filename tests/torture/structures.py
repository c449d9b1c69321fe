"""What is done to each structure, and what its header promises of it: common/structures/*/*.hpp."""
import collections
import os

from elements import Hash, Table
from structure import NAMES, SKEW, Structure


class Lock(Structure):
    TTL = 3
    NAMES = ("a", "b", "c", "d")  # one whose holder is dead is of no use until it expires

    def __init__(self, copies, directory):
        super().__init__(copies, directory)
        self.held = {}
        if copies > 1:
            config = os.path.join(directory, "longest_ttl.conf")
            with open(config, "w", encoding="ascii") as file:
                file.write(f"longest_lock_ttl = {self.TTL}s\n")
            self.options = ("--config", config)

    @property
    def skewed(self):  # only the start of a lost fence depends on clocks
        return self.copies == 1

    def command(self, random, worker):
        if worker in self.held:
            name, token = self.held[worker]
            choice = random.random()
            if choice < 0.35:
                return ["lock", "renew", name, "--token", token, "--ttl", f"{self.TTL}s", *self.options], token
            if choice < 0.9:
                del self.held[worker]
            return ["lock", "release", name, "--token", token], token
        name = random.choice(self.NAMES)
        if random.random() < 0.15:
            return ["lock", "run", name, "--ttl", f"{self.TTL}s", "--grace", "200ms", *self.options, "--", "sh", "-c",
                    f"FAKETIME=+0 date +%s.%N; sleep {random.uniform(0, 0.3):.2f}; FAKETIME=+0 date +%s.%N; echo $MCDS_LOCK_FENCE"], None
        return ["lock", "acquire", name, "--ttl", f"{self.TTL}s", "--fence", "-w", "300ms", *self.options], None

    def ended(self, op):
        if op.verb == "acquire" and op.exit == 0:
            self.held[op.worker] = op.name, op.answer()["token"]

    def check(self, ops):
        for name in self.NAMES:
            mine = [op for op in ops if op.name == name]
            tenures = list(self.tenures(mine))
            tenures.sort(key=lambda tenure: tenure[0])
            latest = None
            for tenure in tenures:
                if latest and tenure[0] < latest[1]:
                    yield "two holders", f"{name}: {latest[3]} has it until {latest[1]:.4f}, {tenure[3]} from {tenure[0]:.4f}"
                if latest is None or tenure[1] > latest[1]:
                    latest = tenure
            fenced = sorted((tenure for tenure in tenures if tenure[2] is not None), key=lambda tenure: tenure[4])
            for one in fenced:
                for other in fenced:
                    if one[5] < other[4] and one[2] >= other[2]:
                        yield "two holders", f"{name}: fence {other[2]} of {other[3]} comes after fence {one[2]} of {one[3]}"

    def tenures(self, ops):
        """(from, to, fence, token, drawn not before, drawn not after): when it was held for certain."""
        ttl = self.TTL * (0.99 if self.copies > 1 else 1)
        for op in ops:
            if op.verb == "acquire" and op.exit == 0:
                answer = op.answer()
                token, until = answer["token"], op.start + ttl
                ended = False
                for later in ops:
                    if later.tag != token or later.start < op.end:
                        continue
                    if later.verb == "renew" and later.exit == 0 and not ended:
                        until = max(until, later.start + ttl)
                    elif later.verb == "release":
                        until, ended = min(until, later.start), True
                yield op.end, until, int(answer["fence"]), token, op.start, op.end
            elif op.verb == "run" and op.exit == 0:
                begun, end, fence = (op.out.split() + ["", ""])[:3]
                yield float(begun), float(end), int(fence) if fence else None, f"run at {begun}", op.start, float(begun)


class Counter(Structure):
    exact = False

    @property
    def forgets(self):  # a plain one has one copy
        return self.exact

    def command(self, random, worker):
        name = random.choice(NAMES)
        if random.random() < 0.7:
            return ["counter", "incr", name, *(["--exact"] if self.exact else [])], None
        return ["counter", "get", name], None

    def heal(self):
        return [["counter", "get", name] for name in NAMES]

    def check(self, ops):
        for name in NAMES:
            mine = [op for op in ops if op.name == name]
            increments = [op for op in mine if op.verb == "incr"]
            for op in mine:
                if not op.done or (op.verb == "incr" and op.exit != 0):
                    continue
                value, own = op.answer().get("value", 0), op.verb == "incr"
                most = sum(one.start < op.end for one in increments if one.done or one.unknown)
                if value > most:
                    yield "doubled", f"{name}: {value} after at most {most} increments: {op.words} at {op.start:.4f}"
                if not self.exact and self.copies > 1:
                    before = [one.reached() or () for one in increments if one.exit == 0 and one.end < op.start]
                    reached = op.reached() or ()
                    least = max((sum(server in servers for servers in before) for server in reached), default=0)
                elif op.most(self.copies):
                    least = sum(one.exit == 0 and one.end < op.start for one in increments) + own
                else:
                    continue
                if value < least:
                    yield "lost", f"{name}: {value} after {least} acknowledged increments: {op.words} at {op.start:.4f}"
            if self.copies == 1:
                told = collections.Counter(op.answer().get("value") for op in increments if op.exit == 0)
                for value, times in told.items():
                    if times > 1 and not self.exact:
                        yield "not linearizable", f"{name}: {times} increments were told {value}"


class ExactCounter(Counter):
    exact = True


class Visitors(Structure):
    skewed = True
    one_copy = True
    PERIOD = 5

    def command(self, random, worker):
        choice, name = random.random(), random.choice(NAMES)
        if choice < 0.45:
            return ["visitors", "hit", name, "--period", str(self.PERIOD)], None
        if choice < 0.75:
            return ["visitors", "hit", name, "--period", str(self.PERIOD), "--id", f"v{random.randrange(12)}"], None
        return ["visitors", "value", name, "--period", str(self.PERIOD)], None

    def heal(self):
        return [["visitors", "value", name, "--period", str(self.PERIOD)] for name in NAMES]

    @staticmethod
    def hits(op):
        return op.verb == "hit"

    def check(self, ops):
        for name in NAMES:
            mine = [op for op in ops if op.name == name]
            periods = collections.defaultdict(list)
            for op in filter(self.hits, mine):
                if op.done:
                    if op.answer().get("counted"):
                        periods[op.answer()["period_started_at"]].append(op)
            unknown = [op for op in mine if self.hits(op) and op.unknown]
            for op in mine:
                if op.verb != "value" or op.exit != 0:
                    continue
                answer = op.answer()
                hits = periods[answer["period_started_at"]]
                least = sum(hit.end < op.start for hit in hits)
                most = sum(hit.start < op.end for hit in hits) + sum(hit.start < op.end for hit in unknown)
                if answer["value"] < least:
                    yield "lost", f"{name}: {answer['value']} visitors, {least} acknowledged, at {op.start:.4f}"
                if answer["value"] > most:
                    yield "doubled", f"{name}: {answer['value']} visitors, at most {most} hits, at {op.start:.4f}"
            counted = collections.Counter()
            for period, hits in periods.items():
                for hit in hits:
                    visitor = hit.answer().get("id")
                    if visitor:
                        counted[period, visitor] += 1
            for (period, visitor), times in counted.items():
                if times > 1:
                    yield "doubled", f"{name}: visitor {visitor} counted {times} times in the period from {period}"


class EventLog(Structure):
    one_copy = True
    skewed = True
    RING = ("--chunk", "6", "--chunks", "60")
    READER = 0  # the worker whose cursor it is

    def command(self, random, worker):
        name = random.choice(NAMES)
        if worker == self.READER and random.random() < 0.5:
            return self.read(name), "cursor"
        if random.random() < 0.85:
            data = f"e{self.fresh()}" + "." * random.choice((0, 0, 0, 2000))
            return ["eventlog", "put", name, data, *self.RING], data
        return ["eventlog", "fetch", name], None

    def read(self, name):
        return ["eventlog", "fetch", name, "--cursor", os.path.join(self.directory, f"cursor.{name}")]

    def heal(self):
        return [["eventlog", "fetch", name] for name in NAMES]

    def last(self):
        return self.heal() + [self.read(name) for name in NAMES]

    def check(self, ops):
        for name in NAMES:
            mine = [op for op in ops if op.name == name]
            puts = {op.tag: op for op in mine if op.verb == "put"}
            delivered, perhaps = collections.Counter(), set()
            for op in mine:
                if op.verb != "fetch":
                    continue
                events = [answer["data"] for answer in op.answers() if "data" in answer]
                for data in set(events):
                    if data not in puts:
                        yield "invented", f"{name}: event {data[:20]} was never put"
                    elif not puts[data].done and not puts[data].unknown:
                        yield "invented", f"{name}: event {data[:20]} is there, its put said exit {puts[data].exit}"
                if "--cursor" in op.words:
                    (delivered.update if op.exit == 0 else perhaps.update)(events)
                    continue
                if op.exit != 0:
                    continue
                for data, times in collections.Counter(events).items():
                    if times > 1:
                        yield "doubled", f"{name}: event {data[:20]} {times} times in one fetch"
                for data, put in puts.items():
                    if put.exit == 0 and put.end < op.start and data not in events:
                        yield "lost", f"{name}: event {data[:20]} is not in the fetch at {op.start:.4f}"
            for data, times in delivered.items():
                if times > 1:
                    yield "doubled", f"{name}: the cursor delivered event {data[:20]} {times} times"
            if any(op.worker == "last" and "--cursor" in op.words and op.exit == 0 for op in mine):
                for data, put in puts.items():
                    if put.exit == 0 and data not in delivered and data not in perhaps:
                        yield "lost", f"{name}: the cursor never delivered event {data[:20]}"


class Array(Structure):
    one_copy = True

    def __init__(self, copies, directory):
        super().__init__(copies, directory)
        self.added = []

    def command(self, random, worker):
        choice, name = random.random(), random.choice(NAMES)
        if choice < 0.5:
            value = f"v{self.fresh()}"
            return ["array", "add", name, value], ((value,), ())
        if choice < 0.75:
            pair = f"v{self.fresh()}", f"v{self.fresh()}"
            gone = [self.added.pop(random.randrange(len(self.added)))] if self.added and random.random() < 0.6 else []
            gone = [value for where, value in gone if where == name]
            words = ["array", "change", name, *(word for value in pair for word in ("--add", value))]
            return words + [word for value in gone for word in ("--remove", value)], (pair, tuple(gone))
        return ["array", "fetch", name], None

    def ended(self, op):
        if op.exit == 0 and op.tag:
            self.added += [(op.name, value) for value in op.tag[0]]

    def heal(self):
        return [["array", "fetch", name] for name in NAMES]

    def check(self, ops):
        for name in NAMES:
            mine = [op for op in ops if op.name == name]
            changes = [op for op in mine if op.tag]
            by_value = {value: op for op in changes for value in op.tag[0]}
            removals = {value: op for op in changes for value in op.tag[1]}
            for op in mine:
                if op.verb != "fetch" or not op.done:
                    continue
                values = op.answer().get("values", [])
                where = {value: i for i, value in enumerate(values)}
                at = f"in the fetch at {op.start:.4f}"
                for value in where:
                    added, removed = by_value.get(value), removals.get(value)
                    if added is None or not (added.done or added.unknown):
                        yield "invented", f"{name}: {value} {at}"
                    if removed and removed.exit == 0 and removed.end < op.start:
                        yield "invented", f"{name}: {value}, which was removed, {at}"
                if len(where) < len(values):
                    yield "doubled", f"{name}: {[value for value, times in collections.Counter(values).items() if times > 1]} {at}"
                for change in changes:
                    kept = [value for value in change.tag[0] if value not in removals]
                    there = [value in where for value in kept]
                    if any(there) and not all(there):
                        yield "not linearizable", f"{name}: half of {change.words} {at}"
                    if change.exit == 0 and change.end < op.start and not all(there):
                        yield "lost", f"{name}: {kept} is not {at}"
                order = sorted((by_value[value].start, by_value[value].end, where[value], value) for value in where
                               if value in by_value and by_value[value].exit == 0)
                for one in order:
                    for other in order:
                        if one[1] < other[0] and one[2] > other[2]:
                            yield "not linearizable", f"{name}: {one[3]} was added before {other[3]} and stands behind it {at}"


class Cache(Structure):
    skewed = True
    one_copy = True
    short = ("-m", "2")  # it forgets: a miss
    KEY = "k"
    TTL = 1

    def command(self, random, worker):
        if random.random() < 0.2:
            return ["cache", random.choice(("expire", "remove")), self.KEY], None
        body = f"r{self.fresh()}"
        size = random.choice((1, 10, 5000))
        return ["cache", "run", self.KEY, "--ttl", f"{self.TTL}s", "--stale", "0", "--rebuild-ttl", "4s", "-w", "1s", "--on-busy",
                "run", "--", "sh", "-c", f"s=$(FAKETIME=+0 date +%s.%N); sleep {random.choice((0, 0.02, 0.1))}; "
                f"printf '%s\\n' {body} $s {body * size} end; echo {body} >&2"], (body, size)

    def check(self, ops):
        asked = {op.tag[0]: op for op in ops if op.verb == "run"}
        invalid = [op for op in ops if op.verb in ("expire", "remove") and op.done]
        for op in ops:
            if op.verb != "run" or op.exit != 0:
                continue
            lines = op.out.split("\n")
            body = lines[0]
            maker = asked.get(body)
            if maker is None or len(lines) != 5 or lines[2] != body * maker.tag[1] or lines[3] != "end" or body not in op.err.split("\n"):
                yield "invented", f"printed by no command: {op.out[:60]!r} {op.err[:60]!r} at {op.start:.4f}"
                continue
            begun = float(lines[1])
            if op.start - maker.end > self.TTL + 2 * SKEW:
                yield "invented", f"{body} ended at {maker.end:.4f} and is still served at {op.start:.4f}"
            for one in invalid:
                if begun < one.start and one.end < op.start:
                    yield "invented", f"{body} began at {begun:.4f}, {one.verb} {one.start:.4f}-{one.end:.4f}, and is served at {op.start:.4f}"


KINDS = {"lock": Lock, "counter": Counter, "exact": ExactCounter, "visitors": Visitors, "eventlog": EventLog, "array": Array,
         "table": Table, "hash": Hash, "cache": Cache}
