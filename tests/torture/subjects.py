"""One field, member, counter, array or log, what clients do to it, and whether one order explains what they were told."""
import collections
import json

from history import ANY, PRESENT, Step, linearizable
from models import Counted, Logged

REFUSED = (64, 65, 69, 75, 77, 78)  # for certain nothing was done


class Subject:
    """`draw` makes a command; `record` takes what became of it; `wrong` says what nothing explains. `look` are the words that read
    it, `ask_all` those that read it and all others of its kind together."""

    def __init__(self, name):
        self.name, self.serial, self.notes, self.ops = name, 0, [], []

    def fresh(self):
        self.serial += 1
        return f"v{self.serial}"

    def record(self, op):
        self.ops.append(op)
        if op.broken():
            self.notes.append(f"{' '.join(op.words)}: {op.broken()}: {op.err.strip()}")
        if op.exit == 2 or '"complete":false' in op.out:
            self.notes.append(f"{' '.join(op.words)} tells a loss: {op.out.strip()}")
        elif op.exit not in REFUSED or op.killed:
            self.note(op, op.start, op.end if op.done else None)

    def note(self, op, start, end):
        raise NotImplementedError


class Element(Subject):
    """With `element` "f.s", f is an element of the structure s."""

    def __init__(self, name):
        super().__init__(name)
        self.element, self.structure = name, name.split(".")[1]
        self.steps = []

    def look(self):
        return [self.kind, self.ask, self.structure, self.element]

    def ask_all(self):
        return [self.kind, "fetch", self.structure]

    def note(self, op, start, end):
        if op.verb == self.ask:
            if end is not None:
                self.steps.append(Step(start, end, self.value(op.answer()), ANY))
        elif op.verb == "fetch":
            if op.exit == 0:
                found = {answer.get(self.field): self.value(answer) for answer in op.answers()}
                self.steps.append(Step(start, end, found.get(self.element), ANY))
        elif op.verb == "remove":
            read = ANY if end is None else PRESENT if op.answer().get("removed") else None
            self.steps.append(Step(start, end, read, None))
        else:
            self.steps.append(Step(start, end, ANY, op.words[4] if op.verb == "set" else "1"))

    def wrong(self):
        return self.notes + ([] if linearizable(self.steps) else ["no order explains it"])


class Field(Element):
    kind, ask, field = "hash", "get", "field"

    def draw(self, dice):
        choice = dice.random()
        if choice < 0.45:
            return ["hash", "set", self.structure, self.element, self.fresh()]
        return ["hash", "remove", self.structure, self.element] if choice < 0.6 else self.look()

    def value(self, answer):
        return answer.get("value")


class Member(Element):
    kind, ask, field = "table", "has", "member"

    def draw(self, dice):
        choice = dice.random()
        if choice < 0.6:
            return ["table", "add" if choice < 0.35 else "remove", self.structure, self.element]
        return self.look()

    def value(self, answer):
        return "1" if answer.get("has", True) and answer else None


class Count(Subject):
    """Always exact."""

    def __init__(self, name):
        super().__init__(name)
        self.history = Counted()

    def draw(self, dice):
        choice = dice.random()
        if choice < 0.4:
            return ["counter", "incr", self.name, str(dice.randrange(1, 10))]
        if choice < 0.6:
            return ["counter", "set", self.name, str(dice.randrange(1, 30) * 100)]
        return ["counter", "remove", self.name] if choice < 0.65 else self.look()

    def look(self):
        return ["counter", "get", self.name]

    ask_all = look

    def note(self, op, start, end):
        if op.verb == "get":
            if end is not None:
                self.history.get(start, end, op.answer().get("value"))
        elif op.verb == "incr":
            self.history.incr(start, end, op.end, int(op.words[3]))
        elif op.verb == "set":
            self.history.set(start, end, op.end, int(op.words[3]))
        else:
            self.history.remove(start, end, op.end, None if end is None else op.answer().get("removed"))

    def wrong(self):
        return self.notes + ([] if self.history.explained() else ["no order explains it"])


class Log(Subject):
    RING = ("--chunk", "1h", "--chunks", "48")

    def __init__(self, name):
        super().__init__(name)
        self.history = Logged()

    def draw(self, dice):
        return ["eventlog", "put", self.name, self.fresh(), *self.RING] if dice.random() < 0.55 else self.look()

    def look(self):
        return ["eventlog", "fetch", self.name]

    ask_all = look

    def note(self, op, start, end):
        if op.verb == "put":
            self.history.put(start, end, op.words[3])
        elif op.exit == 0:
            events = [answer["data"] for answer in op.answers() if "data" in answer]
            self.history.fetch(start, end, events)

    def wrong(self):
        return self.notes + list(self.history.wrong())


KINDS = {"hash": Field, "table": Member, "counter": Count, "eventlog": Log}


def said(op):
    """Its answer without the copies, and its error."""
    answers = [{key: value for key, value in answer.items() if key not in ("copies", "server")} for answer in op.answers()]
    return f"{op.exit} {' '.join(map(json.dumps, answers))} {op.err.strip()[:200]}".strip()


def shares(ops):
    """How many were answered, unknown and refused."""
    return collections.Counter("answered" if op.done else "unknown" if op.unknown else "refused" for op in ops)
