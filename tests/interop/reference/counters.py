"""Counters: plain, and exact. Public domain (CC0 1.0): copy freely."""
import time

from .lines import LOST_REPLY, TRIES, key_of, random_hex, repeated, sealed, unsealed

REMEMBERED = 64


class PlainCounter:
    """A lost reply leaves open whether the change was made; an ExactCounter can tell."""

    def __init__(self, at, name, namespace=""):
        self.at, self.key = at, key_of(namespace, "counter", name)

    def get(self):
        value = repeated(lambda: self.at(self.key).get(self.key))
        if value is not None and not value.rstrip(b" ").isdigit():
            raise ValueError(f"{self.key!r} is not a plain counter")
        return None if value is None else int(value)

    def incr(self, by=1):
        server = self.at(self.key)
        for _ in range(TRIES):
            value = server.incr(self.key, by)
            if value is not None:
                return value
            if server.add(self.key, b"%d" % by):
                return by
        raise RuntimeError(f"{self.key!r} comes and goes")

    def decr(self, by=1):
        """Not below 0; nothing if it is missing."""
        return self.at(self.key).decr(self.key, by)


class ExactCounter:
    def __init__(self, at, name, namespace=""):
        self.at, self.key = at, key_of(namespace, "counter", name)

    def get(self):
        record = self._read()[0]
        return record and record[1]

    def incr(self, by=1):
        return self._change(lambda now: (now or 0) + by)

    def decr(self, by=1):
        """Not below 0; nothing if it is missing."""
        return self._change(lambda now: None if now is None else max(now - by, 0))

    def _change(self, change):
        own, doubt = random_hex(), None
        for _ in range(TRIES):
            record, cas = self._read()
            changes, now, ids, expiry = record or (0, None, [], 0)
            if own in ids:
                return now
            if doubt is not None and not doubt <= changes <= doubt + REMEMBERED:
                raise RuntimeError(f"{self.key!r} was perhaps changed")
            after = change(now)
            if after is None:
                return None
            text = b"C1 %d %d %b" % (changes + 1, after, b",".join([*ids, own][-REMEMBERED:]))
            value = sealed(text + (b" @%d" % expiry if expiry else b""))[:-1]
            server = self.at(self.key)
            try:
                if server.cas(self.key, value, cas, expiry) if record else server.add(self.key, value):
                    return after
            except LOST_REPLY:
                doubt = changes
        raise RuntimeError(f"{self.key!r} changes all the time")

    def _read(self):
        for _ in range(TRIES):
            value, cas = repeated(lambda: self.at(self.key).gets(self.key))
            if value is None:
                return None, None
            kind, *words = (unsealed(value) or b"").split(b" ")
            if kind == b"C1" and len(words) in (3, 4):
                ids = [] if words[2] == b"-" else words[2].split(b",")
                return (int(words[0]), int(words[1]), ids, int(words[3][1:]) if len(words) == 4 else 0), cas
            if kind != b"H":
                raise ValueError(f"{self.key!r} is not an exact counter")
            time.sleep(0.02)  # it is being put into another number of copies
        raise RuntimeError(f"{self.key!r} is held")
