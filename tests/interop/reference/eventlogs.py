"""Event logs. Public domain (CC0 1.0): copy freely."""
import os
import re
import time

from .lines import TRIES, append, get_all, key_of, random_hex, repeated, sealed, text_of, unsealed, value_of

DIRECTORY = 32
GRACE_S = 5
EVENT = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} ")


class Ring:
    """The keys of a log with one length and number of chunks."""

    def __init__(self, log, shape):
        self.shape, self.chunk_s, self.chunks = shape, *map(int, shape.split("x"))
        self.prefix = log + f":{shape}:".encode()

    def part(self, chunk, part):
        return self.prefix + part_name(chunk, part)

    def directory(self, chunk):
        return self.prefix + b"dir:%d" % (chunk // DIRECTORY)

    def expiry(self, chunk):
        return (chunk + self.chunks + 1) * self.chunk_s + 2 + (self.chunk_s + 1) // 2


class EventLog:
    def __init__(self, at, name, namespace="", shape=None):
        self.at, self.log = at, key_of(namespace, "eventlog", name)
        self.shape = shape

    def put(self, data, moment=None):
        """The id of the event, once it is stored."""
        moment = moment or time.time()
        self.shape = self.shape or self._shapes()[-1]
        ring = Ring(self.log, self.shape)
        chunk = int(moment // ring.chunk_s)
        first, own = ring.part(chunk, 0), uuid7(moment)
        line = sealed(own + b" " + text_of(data))
        for part in range(32768):
            answer = append(self.at(first), ring.part(chunk, part), line)
            if answer == "missing":
                answer = self._create(ring, chunk, part, line)
            if answer == "stored":
                return own.decode()
        raise RuntimeError(f"{first!r} is full")

    def read(self):
        """All events as {id: data}, and the chunks of which something was lost, as (shape, chunk)."""
        events, lost = {}, set()
        for shape in [self.shape] if self.shape else self._shapes():
            ring = Ring(self.log, shape)
            now = int(time.time()) // ring.chunk_s
            parts, foreign, listed = self._parts(ring, range(max(0, now - ring.chunks - 1), now + 3))
            lines = [line for value in parts.values() for line in value.split(b"\n")[1:-1]]
            for line in lines + [line for value in foreign for line in value.split(b"\n")[:-1]]:
                ends = (unsealed(line[found.start():]) for found in EVENT.finditer(line))  # behind another program's bytes
                text = next(filter(None, ends), None)
                if text:
                    events.setdefault(text[:36].decode(), value_of(text[37:]))
            promised = range(now - ring.chunks, now + 1)
            lost |= {(shape, chunk) for chunk in losses(ring, parts, listed) if chunk in promised}
        return dict(sorted(events.items())), lost

    def _parts(self, ring, chunks):
        """The values of the parts by (chunk, part), those without a first line, and what the directories list, read afterwards."""
        listed = self._listed(ring, chunks)
        found = get_all(self.at, [ring.part(chunk, 0) for chunk in chunks])
        parts = {(chunk, 0): found[ring.part(chunk, 0)] for chunk in chunks if ring.part(chunk, 0) in found}
        for chunk in {chunk for chunk, _ in [*parts, *listed]}:
            last, part = max((part for at, part in listed if at == chunk), default=0), 1
            while part <= last or (chunk, part - 1) in parts:
                value = self._part(ring, chunk, part)
                parts.update({} if value is None else {(chunk, part): value})
                part += 1
        headers = {at: (unsealed(value.split(b"\n")[0]) or b"").split(b" ") for at, value in parts.items()}
        good = {at: value for at, value in parts.items() if headers[at][:2] == [b"E1", part_name(*at)]}
        foreign = [value for at, value in parts.items() if headers[at][0] != b"E1"]
        return good, foreign, self._listed(ring, chunks)

    def _part(self, ring, chunk, part):
        return repeated(lambda: self.at(ring.part(chunk, 0)).get(ring.part(chunk, part)))

    def _listed(self, ring, chunks):
        """{(chunk, part): {incarnation: second}} of the directories; without the second if it was withdrawn."""
        listed, withdrawn = {}, []
        directories = get_all(self.at, sorted({ring.directory(chunk) for chunk in chunks}))
        for line in b"".join(directories.values()).split(b"\n"):
            begin = max(line.rfind(b"N "), line.rfind(b"W "), 0)  # another program's bytes may stand before it
            kind, name, incarnation, *second = (unsealed(line[begin:]) or b"? ? ?").split(b" ")
            chunk, _, part = name.partition(b".")
            if kind == b"N":
                listed.setdefault((int(chunk), int(part or 0)), {}).setdefault(incarnation, int(second[0]))
            elif kind == b"W":
                withdrawn.append(((int(chunk), int(part or 0)), incarnation))
        for at, incarnation in withdrawn:
            listed.setdefault(at, {})[incarnation] = None
        return listed

    def _create(self, ring, chunk, part, line):
        incarnation = random_hex()
        self._configure(ring, chunk)
        self._direct(ring, chunk, b"N %b %b %d" % (part_name(chunk, part), incarnation, time.time()))
        key, server = ring.part(chunk, part), self.at(ring.part(chunk, 0))
        value = sealed(b"E1 %b %b" % (part_name(chunk, part), incarnation)) + line
        if repeated(lambda: server.add(key, value, ring.expiry(chunk))):
            return "stored"
        self._direct(ring, chunk, b"W %b %b" % (part_name(chunk, part), incarnation))
        return append(server, key, line)

    def _direct(self, ring, chunk, text):
        key, last = ring.directory(chunk), chunk // DIRECTORY * DIRECTORY + DIRECTORY - 1
        for _ in range(TRIES):
            answer = append(self.at(key), key, sealed(text))
            if answer == "stored" or repeated(lambda: self.at(key).add(key, sealed(text), ring.expiry(last))):
                return
            if answer == "full":
                break
        raise RuntimeError(f"{key!r} has no room")

    def _in_use(self):
        """What the conf key says, {what: end}, the newest last; and its cas."""
        key = self.log + b":conf"
        value, cas = repeated(lambda: self.at(key).gets(key))
        found = {}
        for line in (value or b"").split(b"\n"):
            words = (unsealed(line) or b"").split(b" ")
            if words[0] == b"P1" and len(words) == 3:
                found.pop(words[1], None)
                if int(words[2]) > time.time():
                    found[words[1]] = int(words[2])
        return found, value, cas

    def _shapes(self):
        return [what.decode() for what in self._in_use()[0] if b"/" not in what] or ["60x60"]

    def _configure(self, ring, chunk):
        """Readers find the ring by a line in the conf key."""
        key, end, shape = self.log + b":conf", ring.expiry(chunk), ring.shape.encode()
        for _ in range(TRIES):
            found, value, cas = self._in_use()
            if found.get(shape, 0) >= end:
                return
            found.pop(shape, None)
            found[shape] = end
            text = b"".join(sealed(b"P1 %b %d" % one) for one in found.items())
            last, server = max(found.values()), self.at(key)
            if server.add(key, text, last) if value is None else server.cas(key, text, cas, last):
                return


def part_name(chunk, part):
    return b"%d.%d" % (chunk, part) if part else b"%d" % chunk


def losses(ring, parts, listed):
    """Chunks of which a part is gone: one that was listed a while ago, or one before a part that is there."""
    stored = {at: value.split(b"\n")[0].split(b" ")[2] for at, value in parts.items()}
    old = time.time() - GRACE_S - ring.chunk_s / 2
    lost = {at[0] for at, names in listed.items() for name, second in names.items()
            if second is not None and second <= old and stored.get(at) != name}
    lost |= {chunk for chunk, part in stored if part and (chunk, part - 1) not in stored}
    for chunk, part in stored:
        if stored[chunk, part] not in listed.get((chunk, part), {}):  # the directory was lost
            first = chunk // DIRECTORY * DIRECTORY
            lost |= {one for one in range(first, first + DIRECTORY) if (one, 0) not in stored}
    return lost


def uuid7(moment):
    bits = os.urandom(10).hex()
    digits = f"{int(moment * 1000):012x}7{bits[:3]}{8 + int(bits[3], 16) % 4:x}{bits[4:19]}"
    return "-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]]).encode()
