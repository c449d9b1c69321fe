"""Arrays: the journal, and the JSON encoding. Public domain (CC0 1.0): copy freely."""
import json

from .journals import Journal
from .lines import TRIES, key_of, random_hex, repeated, sealed, text_of, value_of


class JournalArray:
    def __init__(self, at, name, namespace=""):
        self.at, self.json_key = at, key_of(namespace, "array", name, "json")
        self.journal = Journal(at, key_of(namespace, "array", name))

    def read(self):
        """The values in order, and whether nothing was lost; (None, True) if there is no array."""
        contents = self.journal.read()
        if contents is None:
            return None, True
        values = []
        for kind, _, *value in contents.lines:
            if kind == b"+":
                values.append(value[0])
            elif kind == b"-":
                values = [other for other in values if other != value[0]]
            elif kind == b"!":
                values = []
        return [value_of(value) for value in values], contents.complete

    def change(self, delete=(), add=(), replace=False):
        """One step, all or nothing. Whether there is an array; adding and replacing create it."""
        changes = [(b"!",)] * replace
        changes += [(b"-", text_of(value)) for value in delete] + [(b"+", text_of(value)) for value in add]
        own = random_hex()
        lines = b"".join(sealed(b" ".join([kind, b"%b.%d" % (own, number), *value]))
                         for number, (kind, *value) in enumerate(changes))
        return self.journal.append(lines, may_create=lambda: bool(add or replace) and self._is_not_json()) is not None

    def _is_not_json(self):
        if repeated(lambda: self.at(self.json_key).get(self.json_key)) is not None:
            raise ValueError(f"{self.json_key!r} exists: the array has the JSON encoding")
        return True


class JsonArray:
    def __init__(self, at, name, namespace=""):
        self.at, self.journal_key = at, key_of(namespace, "array", name)
        self.key = key_of(namespace, "array", name, "json")

    def read(self):
        value = repeated(lambda: self.at(self.key).get(self.key))
        return None if value is None else list_of(value)

    def change(self, delete=(), add=()):
        """Whether there is an array. A lost reply is an error: nothing tells whether the change was made."""
        for _ in range(TRIES):
            server = self.at(self.key)
            value, cas = server.gets(self.key)
            if value is None and not add:
                return False
            if value is None and self.at(self.journal_key).get(self.journal_key) is not None:
                raise ValueError(f"{self.journal_key!r} exists: the array has the journal encoding")
            gone = {text_of(one) for one in delete}
            text = text_of([one for one in list_of(value or b"[]") if text_of(one) not in gone] + list(add))
            if server.add(self.key, text) if value is None else server.cas(self.key, text, cas):
                return True
        raise RuntimeError(f"{self.key!r} changes all the time")


def list_of(value):
    values = json.loads(value)
    if not isinstance(values, list):
        raise ValueError("not a JSON array")
    return values
