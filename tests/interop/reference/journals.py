"""A journal: lines that many clients append to. Arrays and indexes are made of it.

Public domain (CC0 1.0): copy freely.
"""
import re
import time
from dataclasses import dataclass

from .lines import LOST_REPLY, TRIES, append, random_hex, repeated, sealed, unsealed


@dataclass
class Contents:
    incarnation: bytes
    lines: list  # [kind, id] or [kind, id, value], of one id only the first
    complete: bool


class Journal:
    def __init__(self, at, key):
        self.server, self.key = at(key), key  # the segments are on the journal's server

    def append(self, lines, birth=b"", may_create=lambda: True):
        """"stored", or the incarnation of a journal that this created; nothing if there is none and may be none."""
        for attempt in range(TRIES):
            answer = append(self.server, self.key, lines)
            if answer == "stored":
                return answer
            if answer == "full":
                time.sleep(0.005)
                if attempt % 3 == 2:
                    self._seal()
                continue
            if not may_create():
                return None
            incarnation = random_hex()
            if repeated(lambda: self.server.add(self.key, sealed(b"J1 " + incarnation) + birth + lines)):
                return incarnation
        raise RuntimeError(f"{self.key!r} stays full")

    def read(self):
        """Nothing if there is no journal."""
        value = repeated(lambda: self.server.get(self.key))
        for _ in range(TRIES):
            if value is None:
                return None
            incarnation, segments, _, tail = split(self.key, value)
            keys = [self.key + b":s:" + segment for segment in segments]
            found = repeated(lambda: self.server.get_many(keys)) if keys else {}
            before, value = value, None
            if len(found) < len(set(keys)):  # compacted away, or lost?
                value = repeated(lambda: self.server.get(self.key))
            if len(found) == len(set(keys)) or value == before:
                return self._contents(incarnation, [found.get(key) for key in dict.fromkeys(keys)] + [tail])
        raise RuntimeError(f"{self.key!r} changes all the time")

    def _contents(self, incarnation, texts):
        lines, lost = {}, 0
        for text in texts:
            if text is None:
                lost += 1
                continue
            *whole, cut = text.split(b"\n")
            for line in whole:
                words = words_of(line)
                if words is None:  # padding, damaged, or behind bytes that another program appended
                    words = words_behind(line)
                    lost += words is not None or line[:1] != b"#"
                if words is None:
                    continue
                if words[0] == b"!" and words[1] not in lines:
                    lost = 0  # what was lost had been deleted
                lines.setdefault(words[1], words)
            lost += bool(cut)
        return Contents(incarnation, list(lines.values()), lost == 0)

    def _seal(self):
        """A full journal's own lines become a segment."""
        value, cas = repeated(lambda: self.server.gets(self.key))
        if value is None or b"\n#>\n" in value:  # gone, or being put into another number of copies
            return
        _, _, head, tail = split(self.key, value)
        kept = b"".join(line for line in tail.splitlines(keepends=True) if line[:1] != b"#" or words_behind(line[:-1]))
        if not kept:
            raise RuntimeError(f"{self.key!r} has no room for these lines")
        segment = random_hex()
        key = self.key + b":s:" + segment
        root = head + sealed(b"S %b %d" % (segment, kept.count(b"\n")))
        try:
            if self.server.add(key, kept) and not self.server.cas(self.key, root, cas):
                self.server.delete(key)  # another client was faster
        except LOST_REPLY:
            pass  # the journal may list it


def words_of(line):
    words = (unsealed(line) or b"").split(b" ", 2)
    return words if words[0] in (b"+", b"-", b"!", b"=") and len(words) > 1 and len(words[1]) >= 18 else None


def words_behind(line):
    """Of our line behind other bytes in it."""
    return next(filter(None, (words_of(line[found.start():]) for found in re.finditer(rb"[-+!=] ", line))), None)


def split(key, value):
    """Incarnation, segments, the bytes that say so, the lines behind them."""
    incarnation, segments, rest = None, [], value
    while b"\n" in rest:
        line, after = rest.split(b"\n", 1)
        words = (unsealed(line) or b"").split(b" ")
        if words[0] != (b"J1" if incarnation is None else b"S"):
            break
        if incarnation is None:
            incarnation = words[1]
        else:
            segments.append(words[1])
        rest = after
    if incarnation is None:
        raise ValueError(f"{key!r} is not a journal")
    return incarnation, segments, value[:len(value) - len(rest)], rest
