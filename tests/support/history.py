"""What commands were run, when, and what they said; and whether one order explains it."""
import json

DOCUMENTED = {0, 1, 2, 64, 65, 66, 69, 70, 71, 73, 74, 75, 76, 77, 78, 79, 80, 124, 126, 127}


class Op:
    """One run of mcds. `done`: it said yes or no; `unknown`: it may have had its effect, now or later; else it had none."""

    def __init__(self, worker, words, tag, start):
        self.worker, self.words, self.tag, self.start = worker, words, tag, start
        self.end = self.exit = None
        self.out = self.err = ""
        self.killed = False

    @property
    def done(self):
        return self.exit in (0, 1, 2)

    @property
    def unknown(self):
        return self.killed or self.exit == 80

    @property
    def verb(self):
        return self.words[1]

    @property
    def name(self):
        return self.words[2]

    def answers(self):
        found = []
        for line in self.out.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
        return found

    def answer(self):
        return (self.answers() or [{}])[0]

    def reached(self):
        """Numbers of the servers whose copies were read or written; None with one copy. Their addresses are the client's own."""
        copies = self.answer().get("copies")
        return None if copies is None else {copy["server"].rsplit(".", 1)[1] for copy in copies if "error" not in copy}

    def whole(self, copies):
        return copies == 1 or len(self.reached() or ()) == copies

    def most(self, copies):
        return copies == 1 or len(self.reached() or ()) > copies // 2

    def broken(self):
        """Why no run of mcds may end so, whatever the servers do."""
        if self.killed:
            return None
        if self.exit not in DOCUMENTED or self.exit in (64, 70, 71):
            return f"exit {self.exit}"
        if "please report this" in self.err or "Sanitizer" in self.err:
            return "says that it has a bug"
        return None

    def story(self, zero):
        state = "killed" if self.killed else f"exit {self.exit}"
        said = (self.out + self.err).strip().replace("\n", " | ")
        return f"{self.start - zero:9.4f} … {self.end - zero:9.4f}  client {self.worker}  {' '.join(self.words)}: {state}  {said}"


class Step:
    """Of one element: `write` is the value it has afterwards (None: absent), `read` what it must have been before; whatever is
    ANY says nothing. A step without an end may have happened at any time since its start, or never."""

    def __init__(self, start, end, read, write):
        self.start, self.end, self.read, self.write = start, end, read, write


ANY = object()
PRESENT = object()


def linearizable(steps, value=None):
    """Whether one order of the steps, each between its start and its end, explains what was read."""
    def after(i, value):
        read, write = steps[i].read, steps[i].write
        if read is ANY or read == value or (read is PRESENT and value is not None):
            yield value if write is ANY else write

    return explained(steps, value, after)


def explained(steps, state, after):
    """The same of anything else: `after(i, state)` yields what the state may be after the i-th step; nothing if it answered
    something else. A search that remembers where it has been; for some dozens of steps."""
    order = sorted(range(len(steps)), key=lambda i: steps[i].start)
    needed = sum(1 << i for i in order if steps[i].end is not None)
    seen, stack = set(), [(0, state)]
    while stack:
        done, state = stack.pop()
        if done & needed == needed:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        first_end = min(steps[i].end for i in order if not done >> i & 1 and steps[i].end is not None)
        for i in order:
            if done >> i & 1:
                continue
            if steps[i].start > first_end:
                break
            stack += [(done | 1 << i, left) for left in after(i, state)]
    return False
