"""Tables and hashes. Public domain (CC0 1.0): copy freely."""
import time
import zlib

from .journals import Journal
from .lines import TRIES, element_key, get_all, key_of, repeated, sealed, text_of, timed_id, value_of

SHARDS = 16
MOST_UNLISTED_S = 2


class Elements:
    """Elements by their names, which are bytes. Each has a key, and the index tells where to look."""

    def __init__(self, at, structure, name, namespace=""):
        self.at = at
        self.prefix = key_of(namespace, structure, name, "v", "")
        self.index = key_of(namespace, structure, name, "i")

    def get(self, name):
        key = element_key(self.prefix, name)
        return repeated(lambda: self.at(key).get(key))

    def remove(self, name):
        """Whether it was there."""
        key = element_key(self.prefix, name)
        return self.at(key).delete(key)

    def create(self, name, value):
        """Whether it was missing. Its name is in the index before it exists."""
        key = element_key(self.prefix, name)
        started = time.monotonic()
        self._list(name)
        stored = self.at(key).add(key, value)
        if time.monotonic() - started > MOST_UNLISTED_S:
            self._list(name)  # the line was perhaps dropped
        return stored

    def read(self):
        """The elements by their names, and whether none is missing from the index."""
        for attempt in range(4):
            names, complete = self._names()
            if complete:
                break
            time.sleep(0.01 * attempt)  # a shard that another client just begins looks like a lost one
        keys = {element_key(self.prefix, name): name for name in names}
        return {keys[key]: value for key, value in get_all(self.at, list(keys)).items()}, complete

    def _names(self):
        manifest = Journal(self.at, self.index).read()
        complete = manifest is None or manifest.complete
        lines = manifest.lines if manifest else []
        listed, dropped = set(), set()
        for words in lines:
            entry = tuple(words[2].split(b":"))
            if words[0] == b"+":
                listed.add(entry)
                dropped.discard(entry)
            else:
                dropped.add(entry)
        names = set()
        for shard in range(SHARDS):
            number = b"%d" % shard
            contents = Journal(self.at, self._shard(shard)).read()
            if contents is None:
                continue
            complete = complete and contents.complete
            names |= {name_of(words[2]) for words in contents.lines if words[0] == b"+"}
            marks = [words[2] for words in contents.lines if words[0] == b"-"]
            entry = (number, contents.incarnation)
            if entry not in listed and b"born" in marks and b"named:" + contents.incarnation not in marks:
                self._name_shard(shard, contents.incarnation)  # its creator died
                continue
            complete = complete and entry in listed
            listed.discard(entry)
        return names, complete and not listed - dropped

    def _list(self, name):
        shard = zlib.crc32(name) % SHARDS
        birth, line = sealed(b"- %b.0 born" % timed_id()), sealed(b"+ %b.0 %b" % (timed_id(), text_of(name)))
        created = Journal(self.at, self._shard(shard)).append(line, birth)
        if created != "stored":
            self._name_shard(shard, created)

    def _name_shard(self, shard, incarnation):
        Journal(self.at, self.index).append(sealed(b"+ %b.0 %d:%b" % (timed_id(), shard, incarnation)))
        key = self._shard(shard)
        repeated(lambda: self.at(key).append(key, sealed(b"- %b.0 named:%b" % (timed_id(), incarnation))))

    def _shard(self, shard):
        return self.index + b":%d" % shard


def name_of(text):
    name = value_of(text)
    return name if isinstance(name, bytes) else name.encode()


class Table(Elements):
    def __init__(self, at, name, namespace=""):
        super().__init__(at, "table", name, namespace)

    def has(self, member):
        return self.get(member) is not None

    def add(self, member):
        """Whether it was not a member."""
        return not self.has(member) and self.create(member, b"1")


class Hash(Elements):
    def __init__(self, at, name, namespace=""):
        super().__init__(at, "hash", name, namespace)

    def set(self, field, value):
        """Whether it was missing."""
        key = element_key(self.prefix, field)
        for _ in range(TRIES):
            if self.at(key).replace(key, value):
                return False
            if self.create(field, value):
                return True
        raise RuntimeError(f"{key!r} comes and goes")
