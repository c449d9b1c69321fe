"""What can be asked of each structure, through mcds and through the Python reference: same words, same answers.

An answer is what JSON can say; bytes that are not UTF-8 are {"b64": …}. "refused": there is something under the key
that it must not be mixed with.
"""
import base64
import json
import os
import subprocess
from datetime import datetime

from reference import arrays, counters, elements, eventlogs, lines, locks


def told(value):
    """As an answer."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def asked(value):
    """From an answer's form: bytes, or a value of JSON."""
    return base64.b64decode(value["b64"]) if isinstance(value, dict) and list(value) == ["b64"] else value


def element(value):
    value = asked(value)
    return value if isinstance(value, bytes) else value.encode()


class Mcds:
    """Every request is a run of the program."""

    def __init__(self, program, servers, namespace="", profile="ketama"):
        pool = ",".join(server.for_mcds() for server in servers)
        self.command = [program, "-s", pool, "--as", profile, "-n", namespace]
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("MCDS_")}

    def run(self, *words, codes=(0, 1)):
        """The lines it prints, without those that only warn; "refused" for exit codes 64 and 65."""
        done = subprocess.run([*self.command, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False, env=self.environment)
        if done.returncode in (64, 65) and done.returncode not in codes:
            return [{"refused": True}]
        if done.returncode not in codes:
            raise RuntimeError(f"mcds {words} ended with {done.returncode}: {done.stderr.decode()}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def ask(self, field, *words, codes=(0, 1)):
        line = self.run(*words, codes=codes)[0]
        return "refused" if line.get("refused") else line.get(field)

    def is_found(self, *words):
        line = self.run(*words)[0]
        return "refused" if line.get("refused") else line.get("found", True)

    def counter_get(self, name):
        return self.ask("value", "counter", "get", name)

    def counter_incr(self, name, by):
        return self.ask("value", "counter", "incr", name, str(by))

    def counter_decr(self, name, by):
        return self.ask("value", "counter", "decr", name, str(by))

    def exact_incr(self, name, by):
        return self.ask("value", "counter", "incr", "--exact", name, str(by))

    exact_get, exact_decr = counter_get, counter_decr

    def lock_acquire(self, name, ttl_s, slots=1):
        """The token, or nothing."""
        several = ["--slots", str(slots)] if slots > 1 else []
        return self.ask("token", "lock", "acquire", name, "--ttl", f"{ttl_s}s", *several, codes=(0, 75))

    def lock_fence(self, name, ttl_s):
        """Token and fencing token, or nothing."""
        line = self.run("lock", "acquire", name, "--ttl", f"{ttl_s}s", "--fence", codes=(0, 75))[0]
        return [line["token"], int(line["fence"])] if line["acquired"] else None

    def lock_renew(self, name, token, ttl_s):
        return self.ask("renewed", "lock", "renew", name, "--token", token, "--ttl", f"{ttl_s}s")

    def lock_release(self, name, token):
        return self.ask("released", "lock", "release", name, "--token", token)

    def lock_show(self, name):
        """Nothing if it is free, else the holder; {} if he is unknown."""
        line = self.run("lock", "show", name)[0]
        return line.get("holder", {}) if line["held"] else None

    def array_read(self, name):
        line = self.run("array", "fetch", "--encoding", "journal", name, codes=(0, 1, 2))[0]
        if line.get("refused") or line.get("found") is False:
            return "refused" if line.get("refused") else None
        values = line.get("values", [{"b64": value} for value in line.get("values_b64", [])])
        return {"values": values, "complete": line.get("complete", True)}

    def array_change(self, name, delete, add):
        words = [word for kind, values in (("--remove", delete), ("--add", add)) for value in values
                 for word in (kind, argument(value))]
        as_json = [] if any(isinstance(asked(value), bytes) for value in [*delete, *add]) else ["--json"]
        return self.is_found("array", "change", "--encoding", "journal", *as_json, name, *words)

    def array_clear(self, name):
        return self.is_found("array", "replace", "--encoding", "journal", "--allow-empty", name)

    def json_read(self, name):
        return self.ask("values", "array", "fetch", "--encoding", "json", name)

    def json_change(self, name, delete, add):
        words = [word for kind, values in (("--remove", delete), ("--add", add)) for value in values
                 for word in (kind, json.dumps(value))]
        return self.is_found("array", "change", "--encoding", "json", "--json", name, *words)

    def table_add(self, name, member):
        return self.ask("added", "table", "add", name, element(member))

    def table_has(self, name, member):
        return self.ask("has", "table", "has", name, element(member))

    def table_remove(self, name, member):
        return self.ask("removed", "table", "remove", name, element(member))

    def table_read(self, name):
        return self._elements("table", name, "member")

    def hash_set(self, name, field, value):
        """Whether it was missing."""
        return self.ask("created", "hash", "set", name, element(field), element(value)) or False

    def hash_get(self, name, field):
        line = self.run("hash", "get", name, element(field))[0]
        return named(line, "value")

    def hash_remove(self, name, field):
        return self.ask("removed", "hash", "remove", name, element(field))

    def hash_read(self, name):
        return self._elements("hash", name, "field")

    def _elements(self, structure, name, of):
        """[[element, value], …] by element; a table's have no value."""
        found = self.run(structure, "fetch", name, codes=(0, 2))
        there = [[named(line, of)] + [named(line, "value")] * (of == "field") for line in found
                 if of in line or of + "_b64" in line]
        return {"elements": sorted(there, key=str), "complete": all(line.get("complete", True) for line in found)}

    def log_put(self, name, data):
        data = asked(data)
        words = [data] if isinstance(data, bytes) else ["--json", json.dumps(data)]
        return self.ask("id", "eventlog", "put", name, *words)

    def log_read(self, name):
        """[[id, data], …] by id, and the seconds when chunks begin of which something was lost."""
        found = self.run("eventlog", "fetch", name, codes=(0, 65))
        gaps = [datetime.fromisoformat(line["from"].replace("Z", "+00:00")) for line in found if "gap" in line]
        return {"events": [[line["id"], named(line, "data")] for line in found if "id" in line],
                "lost": [int(gap.timestamp()) for gap in gaps]}


def argument(value):
    value = asked(value)
    return value if isinstance(value, bytes) else json.dumps(value)


def named(line, field):
    return {"b64": line[field + "_b64"]} if field + "_b64" in line else line.get(field)


class Reference:
    """The same words, answered by tests/interop/reference."""

    def __init__(self, at, namespace=""):
        self.at, self.namespace = at, namespace

    @classmethod
    def on(cls, server, namespace=""):
        client = lines.client(server.host, server.port)
        return cls(lambda key: client, namespace)

    def _of(self, kind, name):
        return kind(self.at, name, namespace=self.namespace)

    def counter_get(self, name):
        return unless_refused(self._of(counters.PlainCounter, name).get)

    def counter_incr(self, name, by):
        return self._of(counters.PlainCounter, name).incr(by)

    def counter_decr(self, name, by):
        return self._of(counters.PlainCounter, name).decr(by)

    def exact_get(self, name):
        return unless_refused(self._of(counters.ExactCounter, name).get)

    def exact_incr(self, name, by):
        return unless_refused(lambda: self._of(counters.ExactCounter, name).incr(by))

    def exact_decr(self, name, by):
        return unless_refused(lambda: self._of(counters.ExactCounter, name).decr(by))

    def _lock(self, name, token=None):
        slot = int(token.partition(".")[2] or 0) if token else 0
        lock = locks.Lock(self.at, name, self.namespace, slot)
        lock.token = token and token.encode()
        return lock

    def lock_acquire(self, name, ttl_s, slots=1):
        lock = self._lock(name)
        if slots > 1:
            lock = unless_refused(lambda: locks.acquire_slot(self.at, name, slots, ttl_s, namespace=self.namespace))
            return lock.token.decode() if isinstance(lock, locks.Lock) else lock
        return unless_refused(lambda: lock.token.decode() if lock.acquire(ttl_s) else None)

    def lock_fence(self, name, ttl_s):
        lock = self._lock(name)
        return [lock.token.decode(), lock.fence()] if lock.acquire(ttl_s) else None

    def lock_renew(self, name, token, ttl_s):
        return self._lock(name, token).renew(ttl_s)

    def lock_release(self, name, token):
        return self._lock(name, token).release()

    def lock_show(self, name):
        value = self._lock(name).read()[1]
        return value if value is None else locks.holder_of(value) or {}

    def array_read(self, name):
        found = unless_refused(self._of(arrays.JournalArray, name).read)
        if found == "refused" or found[0] is None:
            return found if found == "refused" else None
        values, complete = found
        if any(isinstance(value, bytes) for value in values):  # as mcds shows it: all of them as bytes
            texts = [value if isinstance(value, (bytes, str)) else json.dumps(value) for value in values]
            values = [{"b64": base64.b64encode(element(text)).decode()} for text in texts]
        return {"values": values, "complete": complete}

    def array_change(self, name, delete, add):
        values = [asked(value) for value in delete], [asked(value) for value in add]
        return unless_refused(lambda: self._of(arrays.JournalArray, name).change(*values))

    def array_clear(self, name):
        return self._of(arrays.JournalArray, name).change(replace=True)

    def json_read(self, name):
        return unless_refused(self._of(arrays.JsonArray, name).read)

    def json_change(self, name, delete, add):
        return unless_refused(lambda: self._of(arrays.JsonArray, name).change(delete, add))

    def table_add(self, name, member):
        return self._of(elements.Table, name).add(element(member))

    def table_has(self, name, member):
        return self._of(elements.Table, name).has(element(member))

    def table_remove(self, name, member):
        return self._of(elements.Table, name).remove(element(member))

    def table_read(self, name):
        found, complete = self._of(elements.Table, name).read()
        return {"elements": sorted(([told(member)] for member in found), key=str), "complete": complete}

    def hash_set(self, name, field, value):
        return self._of(elements.Hash, name).set(element(field), element(value))

    def hash_get(self, name, field):
        return told(self._of(elements.Hash, name).get(element(field)))

    def hash_remove(self, name, field):
        return self._of(elements.Hash, name).remove(element(field))

    def hash_read(self, name):
        found, complete = self._of(elements.Hash, name).read()
        there = [[told(field), told(value)] for field, value in found.items()]
        return {"elements": sorted(there, key=str), "complete": complete}

    def log_put(self, name, data):
        return self._of(eventlogs.EventLog, name).put(asked(data))

    def log_read(self, name):
        events, lost = self._of(eventlogs.EventLog, name).read()
        return {"events": [[name, told(data)] for name, data in events.items()],
                "lost": [int(shape.split("x")[0]) * chunk for shape, chunk in sorted(lost)]}


def unless_refused(ask):
    try:
        return ask()
    except ValueError:
        return "refused"
