#!/usr/bin/env python3
"""mcds and the Python reference change the same structures on one server: no difference, no lost or doubled change.

First in turn, each answer compared with a model; then at the same time, two processes of each. MCDS_TEST_SEED chooses the
random numbers. Usage: mixed_test.py BUILD_DIR
"""
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish
from servers import Memcacheds
from structures import Mcds, Reference

OPERATIONS = 3000 if FULL else 600
ROUNDS = 200 if FULL else 40  # more would not fit the server: what it evicts is no difference
NAMES = ["one", "two"]
VALUES = ["a", "b", "two words", "ü\x01\"\\", "", 7, 2.5, None, [1, {"x": []}], {"b": 1, "a": "é"}]
ELEMENTS = ["a", "b", "", "~a", "a b:%ü", "x" * 300, {"b64": "/yA="}, "10.1.2.3"]


class Counters:
    def __init__(self, kind):
        self.kind, self.values = kind, {}

    def step(self, random_, ask):
        name, by = random_.choice(NAMES), random_.randrange(0, 9)
        now = self.values.get(name)
        word = random_.choice(["incr", "incr", "decr", "get"])
        if word == "get":
            return ask(self.kind + "_get", name), now
        after = (now or 0) + by if word == "incr" else None if now is None else max(0, now - by)
        if after is not None:
            self.values[name] = after
        return ask(f"{self.kind}_{word}", name, by), after


class Locks:
    """Of one slot, and of three."""

    def __init__(self):
        self.tokens, self.fence = [], 0

    def step(self, random_, ask):
        word = random_.choice(["acquire", "acquire", "fence", "renew", "release", "show", "slot"])
        single = next((token for name, token in self.tokens if name == "one"), None)
        if word == "show":
            return ask("lock_show", "one") is not None, single is not None
        if word == "acquire":
            return self._taken("one", ask("lock_acquire", "one", 60)), single is None
        if word == "slot":
            free = sum(name == "many" for name, _ in self.tokens) < 3
            return self._taken("many", ask("lock_acquire", "many", 60, 3)), free
        if word == "fence":
            answer = ask("lock_fence", "one", 60)
            fence, self.fence = self.fence, answer[1] if answer else self.fence
            return self._taken("one", answer and answer[0]) and fence < answer[1], single is None
        held = random_.choice(self.tokens) if self.tokens and random_.random() < 0.8 else ("one", "a" * 16)
        answer = ask(f"lock_{word}", *held, *([60] if word == "renew" else []))
        was = held in self.tokens
        if was and word == "release":
            self.tokens.remove(held)
        return answer, was

    def _taken(self, name, token):
        if token:
            self.tokens.append((name, token))
        return bool(token)


class Arrays:
    def __init__(self, kind):
        self.kind, self.values = kind, None

    def step(self, random_, ask):
        word = random_.choice(["read"] + ["change"] * 4 + ["empty"] * (random_.random() < 0.1))
        if word == "read":
            values = None if self.values is None else [json.loads(value) for value in self.values]
            as_read = values if self.kind == "json" or values is None else {"values": values, "complete": True}
            return ask(f"{self.kind}_read", "list"), as_read
        if word == "empty" and self.kind == "array":
            self.values = []
            return ask("array_clear", "list"), True
        delete, add = random_.choices(VALUES, k=random_.randrange(2)), random_.choices(VALUES, k=random_.randrange(3))
        if not delete + add:
            delete = ["none"]
        if self.values is not None or add:
            gone = [json.dumps(value) for value in delete]
            left = [value for value in self.values or [] if value not in gone]
            self.values = left + [json.dumps(value) for value in add]
        return ask(f"{self.kind}_change", "list", delete, add), self.values is not None


class Elements:
    def __init__(self, kind):
        self.kind, self.there = kind, {}

    def step(self, random_, ask):
        name, value = random_.choice(ELEMENTS), random_.choice(["v", "", {"b64": "/w=="}])
        key, is_table = json.dumps(name), self.kind == "table"
        word = random_.choice(["put", "put", "get", "remove"] + ["read"] * (random_.random() < 0.4))
        if word == "read":
            there = [[json.loads(one)] + [with_value] * (not is_table) for one, with_value in self.there.items()]
            return ask(f"{self.kind}_read", "all"), {"elements": sorted(there, key=str), "complete": True}
        if word == "remove":
            return ask(f"{self.kind}_remove", "all", name), self.there.pop(key, None) is not None
        if word == "get":
            known = key in self.there if is_table else self.there.get(key)
            return ask("table_has" if is_table else "hash_get", "all", name), known
        new = key not in self.there
        self.there[key] = value
        return (ask("table_add", "all", name) if is_table else ask("hash_set", "all", name, value)), new


class Logs:
    def __init__(self):
        self.events = {}

    def step(self, random_, ask):
        if self.events and random_.random() < 0.1:
            return ask("log_read", "log"), {"events": [list(one) for one in sorted(self.events.items())], "lost": []}
        data = random_.choice([*VALUES, {"b64": "/yA="}, "x" * 9000])
        event = ask("log_put", "log", data)
        fresh = event not in self.events
        self.events[event] = data
        return fresh, True


MODELS = {"counter": lambda: Counters("counter"), "exact": lambda: Counters("exact"), "lock": Locks,
          "array": lambda: Arrays("array"), "json": lambda: Arrays("json"), "table": lambda: Elements("table"),
          "hash": lambda: Elements("hash"), "log": Logs}


def in_turn(kind, ours, theirs, seed, operations=OPERATIONS):
    """Differences; each request goes to one of the two, and both read the same in the end."""
    random_, model, found = random.Random(seed), MODELS[kind](), []
    for number in range(operations):
        asked = []

        def ask(word, *values):
            side = random_.choice([ours, theirs])
            asked.append(f"{type(side).__name__} {word} {values}")
            return getattr(side, word)(*values)

        answer, expected = model.step(random_, ask)
        if answer != expected:
            found.append(f"{kind}, operation {number} of seed {seed}: {asked}: {answer!r}, not {expected!r}")
            break  # the model is another one from here on
    for word, name in {"array": [("array_read", "list")], "json": [("json_read", "list")], "log": [("log_read", "log")],
                       "table": [("table_read", "all")], "hash": [("hash_read", "all")]}.get(kind, []):
        one, other = getattr(ours, word)(name), getattr(theirs, word)(name)
        if one != other:
            found.append(f"{kind}: mcds reads {one!r}, the reference {other!r}")
    return found


def counting(side, _number, random_, kind):
    """What each change answered, and what all of them added."""
    changes = [random_.randrange(1, 5) for _ in range(ROUNDS)]
    answers = [getattr(side, f"{kind}_incr")(f"shared.{kind}", by) for by in changes]
    return answers, sum(changes)


def logging(side, number, random_, _folder):
    """The events it put."""
    texts = [f"{number}.{i} " + "x" * random_.randrange(12000) for i in range(ROUNDS)]
    return [[side.log_put("shared", text), text] for text in texts]


def listing(side, number, random_, _folder):
    """The values that must be left of it, in order."""
    left = []
    for i in range(ROUNDS):
        gone = [left.pop(random_.randrange(len(left)))] if left and random_.random() < 0.3 else []
        left.append(f"{number}.{i} " + "x" * random_.randrange(12000))
        side.array_change("shared", gone, left[-1:])
    return left


def naming(side, number, random_, _folder):
    """The fields that must be left of it, with their values."""
    left = {}
    for i in range(ROUNDS):
        if left and random_.random() < 0.3:
            gone = random_.choice(sorted(left))
            left.pop(gone)
            side.hash_remove("shared", gone)
        left[f"{number}:{i}"] = str(random_.random())
        side.hash_set("shared", f"{number}:{i}", left[f"{number}:{i}"])
    return left


def locking(side, number, random_, folder):
    """Errors. Where more than allowed hold the lock, a file exists already."""
    errors, fences = [], []
    for i in range(ROUNDS // 2):
        slots = random_.choice([1, 2])
        while True:
            taken = side.lock_fence("one", 60) if slots == 1 else side.lock_acquire("two", 60, slots)
            if taken:
                break
            time.sleep(random_.random() / 500)
        token, fence = taken if slots == 1 else (taken, None)
        files = [f"{folder}/{slots}.{slot}" for slot in range(slots)]
        mine = next((file for file in files if made(file, number)), None)
        if mine is None:
            errors.append(f"round {i} of {number}: {slots + 1} hold a lock of {slots}")
        if fence is not None:
            with open(f"{folder}/fences", "a", encoding="ascii") as file:
                file.write(f"{fence}\n")
            fences.append(fence)
        time.sleep(random_.random() / 1000)
        if mine:
            os.unlink(mine)
        if not side.lock_release("one" if slots == 1 else "two", token):
            errors.append(f"round {i} of {number}: the lock was lost")
    return errors


def made(file, number):
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return number >= 0


def one_of_four(work, mcds, server, number, seed, extra, results):
    side = Mcds(mcds, [server], "c:") if number % 2 else Reference.on(server, "c:")
    try:
        results.put((number, work(side, number, random.Random(seed + number), extra)))
    except Exception as error:  # it has no other way to be seen
        results.put((number, error))
        raise


def together(work, mcds, server, seed, extra=None):
    """What each of four processes returns, two of mcds and two of the reference."""
    results = multiprocessing.SimpleQueue()
    workers = [multiprocessing.Process(target=one_of_four, args=(work, mcds, server, number, seed, extra, results))
               for number in range(4)]
    for worker in workers:
        worker.start()
    answers = dict(results.get() for _ in workers)
    for worker in workers:
        worker.join()
    for number, answer in answers.items():
        check(not isinstance(answer, Exception), f"{work.__name__} {number}: {answer!r}")
    return [answers[number] for number in range(4) if not isinstance(answers[number], Exception)]


def at_the_same_time(mcds, server, directory, seed):
    sides = [Mcds(mcds, [server], "c:"), Reference.on(server, "c:")]
    for kind in ("counter", "exact"):
        counts = together(counting, mcds, server, seed, kind)
        total, answers = sum(one for _, one in counts), [answer for some, _ in counts for answer in some]
        check(len(set(answers)) == 4 * ROUNDS and max(answers) == total, f"{kind}: two changes got one answer")
        for side in sides:
            found = getattr(side, f"{kind}_get")(f"shared.{kind}")
            check(found == total, f"{kind}: {found} after {total} by four at once, says {type(side).__name__}")
    events = sorted(event for part in together(logging, mcds, server, seed) for event in part)
    left = together(listing, mcds, server, seed)
    named = [[field, value] for part in together(naming, mcds, server, seed) for field, value in part.items()]
    fields = {"elements": sorted(named, key=str), "complete": True}
    for side in sides:
        found = side.log_read("shared")
        check(found == {"events": events, "lost": []}, f"log: {len(found['events'])} of {len(events)}, {type(side).__name__}")
        hashed = side.hash_read("shared")
        check(hashed == fields, f"hash: {len(hashed['elements'])} fields of {len(fields['elements'])}, {type(side).__name__}")
        read = side.array_read("shared")
        check(read["complete"] and len(read["values"]) == sum(map(len, left)),
              f"array: {len(read['values'])} values of {sum(map(len, left))}, says {type(side).__name__}")
        for number, values in enumerate(left):
            mine = [value for value in read["values"] if value.startswith(f"{number}.")]
            check(mine == values, f"array: {number} left {len(values)} values, {type(side).__name__} reads {len(mine)}")
    check(sides[0].array_read("shared") == sides[1].array_read("shared"), "array: the two read different orders")
    errors = [error for part in together(locking, mcds, server, seed, directory) for error in part]
    check(not errors, f"locks: {errors[:5]}")
    with open(f"{directory}/fences", encoding="ascii") as file:
        fences = [int(line) for line in file]
    check(len(fences) > ROUNDS / 4 and sorted(set(fences)) == fences, f"fences do not grow: {fences}")


def main():
    mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
    seed = int(os.environ.get("MCDS_TEST_SEED") or random.randrange(1 << 30))
    print(f"MCDS_TEST_SEED={seed}")
    with tempfile.TemporaryDirectory(prefix="mcds-mixed-") as directory, Memcacheds(directory) as memcacheds:
        server = memcacheds.on_kernel_port()
        for kind in MODELS:
            started = time.monotonic()
            found = in_turn(kind, Mcds(mcds, [server], f"{kind}."), Reference.on(server, f"{kind}."), seed)
            check(not found, "\n".join(found))
            print(f"{kind}: {OPERATIONS} operations in {time.monotonic() - started:.1f} s")
        started = time.monotonic()
        at_the_same_time(mcds, server, directory, seed)
        print(f"at the same time: {time.monotonic() - started:.1f} s")
    finish()


if __name__ == "__main__":
    main()
