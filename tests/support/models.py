"""What counters and arrays may answer, for histories with several copies. Each class takes the operations of one counter or array in
any order and says whether one order explains their answers. An operation without an end may have happened at any time since its
start, or never; one that was refused is not given to it.
"""
import collections

from history import explained


class Span:
    """`start` to `end`, None if nobody knows whether it was done; `over` is when its program was gone."""

    def __init__(self, start, end, over, kind, value=None, answer=None):
        self.start, self.end, self.over, self.kind, self.value, self.answer = start, end, over, kind, value, answer


class Counted:
    """An exact counter. `set` and `remove` take away what they saw when they began: every increment that had ended before, of those
    that ran at the same time any, and none that began after they were over, however late they arrive."""

    def __init__(self):
        self.spans = []

    def incr(self, start, end, over, delta):
        self.spans.append(Span(start, end, over, "incr", delta))

    def get(self, start, end, answer):
        """`answer` is None where there was none."""
        self.spans.append(Span(start, end, end, "get", answer=answer))

    def set(self, start, end, over, value):
        self.spans.append(Span(start, end, over, "set", value))

    def remove(self, start, end, over, removed=None):
        """`removed`: what it was told, None if nothing."""
        self.spans.append(Span(start, end, over, "set", None, removed))

    def explained(self):
        spans = self.spans
        increments = [i for i, span in enumerate(spans) if span.kind == "incr"]

        # The state: what the last set left; the increments that were made, those that sets have seen, and the sets, as bits.
        def value(state):
            base, made, seen, _ = state
            counting = [spans[i].value for i in increments if made >> i & 1 and not seen >> i & 1]
            return None if base is None and not counting else (base or 0) + sum(counting)

        def after(i, state):
            span, (base, made, seen, sets) = spans[i], state
            if span.kind == "get":
                if value(state) == span.answer:
                    yield state
            elif span.kind == "incr":
                yield base, made | 1 << i, seen, sets
            else:
                yield from reset(i, span, state)

        def reset(i, span, state):
            base, made, seen, sets = state
            if span.answer is False:
                if value(state) is None:
                    yield state
                return
            if span.answer is True and value(state) is None:
                return
            before = [j for j in increments if spans[j].end is not None and spans[j].end < span.start]
            beside = [j for j in increments if j not in before and spans[j].start < span.over and not seen >> j & 1]
            seen |= sum(1 << j for j in before)
            # One that is older than another only takes away what it saw.
            beaten = any(sets >> j & 1 and not spans[j].over < span.start for j in range(len(spans)))
            for choice in range(1 << len(beside)):
                saw = seen | sum(1 << j for at, j in enumerate(beside) if choice >> at & 1)
                yield span.value, made, saw, sets | 1 << i
                if beaten:
                    yield base, made, saw, sets | 1 << i

        return explained(spans, (None, 0, 0, 0), after)


class Logged:
    """A log: who put an event that was acknowledged is in every fetch that begins later, once; what a fetch has shown stays."""

    def __init__(self):
        self.puts, self.fetches = {}, []

    def put(self, start, end, event):
        self.puts[event] = start, end

    def fetch(self, start, end, events):
        self.fetches.append((start, end, events))

    def wrong(self):
        """What no order explains, in words."""
        shown = {}  # when each event had been seen
        for start, end, events in sorted(self.fetches, key=lambda fetch: fetch[1]):
            for event, times in collections.Counter(events).items():
                if event not in self.puts or self.puts[event][0] > end:
                    yield f"{event} was never put"
                if times > 1:
                    yield f"{event} is there {times} times"
            for event in set(events):
                shown.setdefault(event, end)
        for start, end, events in self.fetches:
            for event, (_, ended) in self.puts.items():
                if event not in events and ended is not None and ended < start:
                    yield f"{event} is lost in the fetch at {start:.4f}"
                elif event not in events and shown.get(event, start) < start:
                    yield f"{event} was shown before and is gone in the fetch at {start:.4f}"
