"""Tables and hashes under torture: each element is a register of its own."""
import collections

from history import ANY, PRESENT, Step, linearizable
from structure import NAMES, Structure


class Elements(Structure):
    """A few elements at a time, each for some operations: so the search for an order stays short."""
    LIFE = 14

    def __init__(self, copies, directory):
        super().__init__(copies, directory)
        self.live = {name: [[f"f{self.fresh()}", 0] for _ in range(3)] for name in NAMES}

    def element(self, random, name):
        one = random.choice(self.live[name])
        one[1] += 1
        if one[1] > self.LIFE:
            self.live[name].remove(one)
            self.live[name].append([f"f{self.fresh()}", 0])
        return one[0]

    def heal(self):
        return [[self.kind, "fetch", name] for name in NAMES]

    def last(self):
        return self.heal() + [[self.kind, self.ask, name, *(element for element, _ in self.live[name])] for name in NAMES]

    def check(self, ops):
        for name in NAMES:
            steps, wrong = collections.defaultdict(list), []
            mine = [op for op in ops if op.name == name]
            for op in mine:
                if op.tag is not None and op.verb not in (self.ask, "fetch"):
                    if op.done or op.unknown:
                        steps[op.tag].append(self.change(op))
            for op in mine:
                if not op.done:
                    continue
                if op.verb == "fetch":
                    if op.worker != "last" and self.copies > 1:
                        continue  # it does not say which copies it reached
                    if op.exit == 0:
                        wrong += self.fetched(name, op, steps)
                elif op.verb == self.ask:
                    for answer in op.answers():
                        one = answer[self.field]
                        if self.copies > 1 and len([copy for copy in answer.get("copies", ()) if "error" not in copy]) * 2 <= self.copies:
                            continue
                        steps[one].append(Step(op.start, op.end, self.value(answer), ANY))
            yield from wrong
            for element, some in steps.items():
                if not linearizable(some):
                    story = "; ".join(f"{step.start:.4f}-{step.end or 0:.4f} {self.said(step)}" for step in sorted(some, key=lambda s: s.start))
                    yield "not linearizable", f"{name} {element}: {story}"

    @staticmethod
    def said(step):
        read = "" if step.read is ANY else f"reads {'anything' if step.read is PRESENT else step.read} "
        return read + ("" if step.write is ANY else f"writes {step.write}")

    def fetched(self, name, op, steps):
        found = {answer[self.field]: self.value(answer) for answer in op.answers() if self.field in answer}
        for element in found.keys() - steps.keys():
            yield "invented", f"{name}: {element} was never set"
        for element in steps:
            steps[element].append(Step(op.start, op.end, found.get(element), ANY))


class Hash(Elements):
    kind, ask, field = "hash", "get", "field"

    def command(self, random, worker):
        choice, name = random.random(), random.choice(NAMES)
        if choice < 0.05:
            return ["hash", "fetch", name], None
        element = self.element(random, name)
        if choice < 0.5:
            return ["hash", "set", name, element, f"v{self.fresh()}"], element
        if choice < 0.6:
            return ["hash", "remove", name, element], element
        return ["hash", "get", name, element], element

    def value(self, answer):
        return answer.get("value")

    def change(self, op):
        end = op.end if op.done else None
        write = op.words[4] if op.verb == "set" else None
        return Step(op.start, end, ANY, write)


class Table(Elements):
    kind, ask, field = "table", "has", "member"

    def command(self, random, worker):
        choice, name = random.random(), random.choice(NAMES)
        if choice < 0.05:
            return ["table", "fetch", name], None
        element = self.element(random, name)
        if choice < 0.4:
            return ["table", "add", name, element], element
        if choice < 0.6:
            return ["table", "remove", name, element], element
        return ["table", "has", name, element], element

    def value(self, answer):
        return "1" if answer.get("has", True) else None

    def change(self, op):
        end, read = op.end if op.done else None, ANY
        if op.done and self.copies == 1:
            read = {"add": (None if op.answer().get("added") else PRESENT),
                    "remove": (PRESENT if op.answer().get("removed") else None)}[op.verb]
        return Step(op.start, end, read, "1" if op.verb == "add" else None)
