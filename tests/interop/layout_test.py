#!/usr/bin/env python3
"""Two clients in another language share mcds's structures, knowing only what mcds-layout(7) tells.

Usage: layout_test.py BUILD_DIR
"""
import base64
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import pylibmc
from checks import check, finish
from pymemcache.client.base import Client
from pymemcache.client.hash import HashClient
from servers import Memcacheds

IN_THE_PAST = 2592001


class ThroughPymemcache:
    profile = "pymemcache-rendezvous"

    def __init__(self, servers):
        self.servers = servers
        self.client = HashClient([(server.host, server.port) for server in servers])

    def get(self, key):
        return self.client.get(key)

    def gets(self, key):
        return self.client.gets(key)

    def cas(self, key, value, unique, expire=0):
        return bool(self.client.cas(key, value, unique, expire=expire, noreply=False))

    def add(self, key, value, expire=0):
        return bool(self.client.add(key, value, expire=expire, noreply=False))

    def set(self, key, value):
        return bool(self.client.set(key, value, noreply=False))

    def append(self, key, value):
        return bool(self.client.append(key, value, noreply=False))

    def replace(self, key, value):
        return bool(self.client.replace(key, value, noreply=False))

    def delete(self, key):
        return bool(self.client.delete(key, noreply=False))

    def incr(self, key, delta):
        return self.client.incr(key, delta)

    def decr(self, key, delta):
        return self.client.decr(key, delta)


class ThroughPylibmc:
    profile = "pylibmc-ketama-weighted"

    def __init__(self, servers):
        self.servers = servers
        self.client = pylibmc.Client([f"{server.host}:{server.port}" for server in servers],
                                     behaviors={"ketama_weighted": True, "cas": True})

    def get(self, key):
        return self.client.get(key)

    def gets(self, key):
        return self.client.gets(key)

    def cas(self, key, value, unique, expire=0):
        return self.client.cas(key, value, unique, expire)

    def add(self, key, value, expire=0):
        return self.client.add(key, value, expire)

    def set(self, key, value):
        return self.client.set(key, value)

    def append(self, key, value):
        try:
            return self.client.append(key, value)
        except pylibmc.NotStored:
            return False

    def replace(self, key, value):
        return self.client.replace(key, value)

    def delete(self, key):
        return self.client.delete(key)

    def incr(self, key, delta):
        try:
            return self.client.incr(key, delta)
        except pylibmc.NotFound:
            return None

    def decr(self, key, delta):
        return self.client.decr(key, delta)


def sealed(text):
    return f"{text} *{zlib.crc32(text.encode()):08x}".encode()


def opened(line):
    body, checksum = line.rsplit(b" *", 1)
    if f"{zlib.crc32(body):08x}".encode() != checksum:
        raise ValueError(f"wrong checksum: {line}")
    return body.decode()


def encoded(name):
    return "".join(chr(byte) if 0x20 < byte < 0x7f and byte not in b"%:" else f"%{byte:02x}" for byte in name.encode())


def random_id():
    return f"{random.getrandbits(64):016x}"


def value_of(text):
    """A value in a journal: JSON, or b and the base64 of bytes that are not UTF-8."""
    return base64.b64decode(json.loads(text[1:])) if text.startswith('b"') else json.loads(text)


class Both:
    """One client and mcds on the same servers, keys placed as the client places them."""

    def __init__(self, mcds, client, servers):
        self.command = [mcds, "-s", ",".join(server.for_mcds() for server in servers), "--as", client.profile]
        self.client = client

    def run(self, *arguments, stdin=None):
        return subprocess.run([*self.command, *arguments], input=stdin, capture_output=True, timeout=60, check=False,
                              stdin=None if stdin is not None else subprocess.DEVNULL,
                              env={name: value for name, value in os.environ.items() if not name.startswith("MCDS_")})

    def does(self, *arguments):
        done = self.run(*arguments)
        self.check(done.returncode == 0, f"mcds {arguments} ended with {done.returncode}: {done.stderr}")
        return done.stdout.decode()

    def lines(self, *arguments):
        return [json.loads(line) for line in self.does(*arguments).splitlines()]

    def check(self, ok, message):
        check(ok, f"{self.client.profile}: {message}")

    def equal(self, found, expected, what):
        self.check(found == expected, f"{what}: {found!r}, not {expected!r}")


def counters(both):
    client = both.client
    both.does("counter", "incr", "hits", "41")
    both.equal(client.incr("counter:hits", 1), 42, "incr of mcds's counter")
    both.equal(client.get("counter:hits"), b"42", "a counter's value")
    both.does("counter", "set", "countdown", "10")
    both.equal(client.decr("counter:countdown", 1), 9, "decr of mcds's counter")
    # memcached pads it where it writes in place, which it does not while anything else holds the item.
    both.equal(client.get("counter:countdown").rstrip(b" "), b"9", "what decr leaves")
    both.equal(both.does("-o", "value", "counter", "get", "hits", "countdown").split(), ["42", "9"], "counters read by mcds")
    both.check(client.add("counter:theirs", b"7"), "add of a counter")
    both.equal(both.does("-o", "value", "counter", "incr", "theirs"), "8\n", "incr of the client's counter")
    both.does("counter", "incr", "--exact", "exact", "5")
    both.does("counter", "incr", "--exact", "exact", "6")
    words = opened(client.get("counter:exact")).split()
    both.equal((words[0], words[2]), ("C1", "11"), "an exact counter")


def json_arrays(both):
    client = both.client
    key = "array:list:json"
    both.does("array", "add", "--encoding", "json", "list", "a", "ü")
    both.equal(json.loads(client.get(key)), ["a", "ü"], "a JSON array")
    value, unique = client.gets(key)
    both.check(client.cas(key, json.dumps(json.loads(value) + ["from elsewhere"]).encode(), unique), "cas of a JSON array")
    both.equal(json.loads(both.does("array", "fetch", "--encoding", "json", "list"))["values"], ["a", "ü", "from elsewhere"],
               "a JSON array the client changed")


def part(client, key):
    """A part lies with what it continues; these clients place a key by nothing but itself, so each server is asked."""
    for server in client.servers:
        value = Client((server.host, server.port)).get(key)
        if value is not None:
            return value
    return b""


def journal(client, root):
    """The lines of a journal, those of its segments first, each id once."""
    lines = client.get(root).splitlines()
    segments = [opened(line).split()[1] for line in lines if line.startswith(b"S")]
    lines = [line for segment in segments for line in part(client, f"{root}:s:{segment}").splitlines()] + lines
    seen = set()
    for line in lines:
        if line[:1] in (b"+", b"-", b"!", b"="):
            operation, identity, *value = opened(line).split(" ", 2)
            if identity not in seen:
                seen.add(identity)
                yield operation, value[0] if value else None


def replayed(client, key):
    values = []
    for operation, value in journal(client, key):
        if operation == "+":
            values.append(value_of(value))
        elif operation == "-":
            values = [other for other in values if other != value_of(value)]
        elif operation == "!":
            values = []
    return values


def journal_arrays(both):
    client = both.client
    both.does("array", "add", "jobs", "one", "two words", "three\nlines", "two words")
    both.does("array", "change", "jobs", "--delete", "one", "--add", "four")
    both.equal(replayed(client, "array:jobs"), ["two words", "three\nlines", "two words", "four"], "a journal")
    step = random_id()
    lines = [sealed(f"- {step}.0 {json.dumps('two words')}"), sealed(f"+ {step}.1 {json.dumps('five')}")]
    both.check(client.append("array:jobs", b"\n".join(lines) + b"\n"), "append to a journal")
    both.equal(json.loads(both.does("array", "fetch", "jobs"))["values"], ["three\nlines", "four", "five"],
               "a journal the client changed")
    first = sealed(f"J1 {random_id()}") + b"\n" + sealed(f'+ {random_id()}.0 "theirs"') + b"\n"
    both.check(not client.append("array:new", first) and client.add("array:new", first), "add of a journal")
    both.equal(json.loads(both.does("array", "fetch", "new"))["values"], ["theirs"], "a journal the client began")
    for i in range(60):
        both.does("array", "add", "long", *(f"{i}.{j} {'x' * 900}" for j in range(20)))
    both.equal(replayed(client, "array:long"), json.loads(both.does("array", "fetch", "long"))["values"],
               "a journal of several segments")


def listed(client, structure):
    """The names in an index: the manifest has the shards, each shard's lines the names."""
    shards = {value.split(":")[0] for operation, value in journal(client, f"{structure}:i") if operation == "+"}
    return {value_of(value) for shard in shards for operation, value in journal(client, f"{structure}:i:{shard}")
            if operation == "+"}


def list_element(client, structure, name):
    """The element's line goes to its shard before its key exists; who creates a shard tells the manifest."""
    shard = f"{structure}:i:{zlib.crc32(name.encode()) % 16}"
    line = sealed(f"+ {int(time.time()):08x}{random.getrandbits(32):08x}.0 {json.dumps(name, ensure_ascii=False)}") + b"\n"
    if client.append(shard, line):
        return
    incarnation = random_id()
    client.add(shard, sealed(f"J1 {incarnation}") + b"\n" + line)
    line = sealed(f"+ {random_id()}.0 {shard.rsplit(':', 1)[1]}:{incarnation}") + b"\n"
    if not client.append(f"{structure}:i", line):
        client.add(f"{structure}:i", sealed(f"J1 {random_id()}") + b"\n" + line)


def hashes(both):
    client = both.client
    odd = "a b:ü%"
    both.does("hash", "set", "cfg", "color", "blue")
    both.does("hash", "set", "cfg", odd, "two words")
    both.equal(client.get("hash:cfg:v:color"), b"blue", "a field's value")
    both.equal(client.get("hash:cfg:v:" + encoded(odd)), b"two words", "the value of a field with an odd name")
    both.check(client.replace("hash:cfg:v:color", b"green"), "replace of a field")
    both.equal(both.does("-o", "value", "hash", "get", "cfg", "color"), "green", "a field the client changed")
    both.equal(listed(client, "hash:cfg"), {"color", odd}, "the fields an index lists")
    for name in ("theirs", "their other", "x1", "x2"):
        list_element(client, "hash:cfg", name)
        both.check(client.add("hash:cfg:v:" + encoded(name), b"value"), "add of a field")
    found = {line["field"]: line["value"] for line in both.lines("hash", "fetch", "cfg")}
    both.equal(found, {"color": "green", odd: "two words", "theirs": "value", "their other": "value", "x1": "value",
                       "x2": "value"}, "a hash the client added to")
    both.check(client.delete("hash:cfg:v:color"), "delete of a field")
    both.equal(both.run("hash", "get", "cfg", "color").returncode, 1, "a field the client removed")


def tables(both):
    client = both.client
    both.does("table", "add", "blocked", "10.1.2.3", "fe80::1")
    both.equal(client.get("table:blocked:v:" + encoded("fe80::1")), b"1", "a member")
    both.check(client.delete("table:blocked:v:10.1.2.3"), "delete of a member")
    list_element(client, "table:blocked", "10.9.9.9")
    both.check(client.add("table:blocked:v:10.9.9.9", b"1"), "add of a member")
    both.equal({line["member"] for line in both.lines("table", "fetch", "blocked")}, {"fe80::1", "10.9.9.9"},
               "a table the client changed")


def event_logs(both):
    client = both.client
    texts = ["plain", 'quoted "ü"', "two\nlines"]
    for text in texts:
        both.does("eventlog", "put", "log", text)
    read = []
    now = int(time.time()) // 60
    for chunk in (now - 1, now):
        for line in (client.get(f"eventlog:log:60x60:{chunk}") or b"").splitlines()[1:]:
            read.append(value_of(opened(line).split(" ", 1)[1]))
    both.equal(read, texts, "the events of the chunks")
    moment = int(time.time() * 1000)
    identity = uuid.UUID(int=moment << 80 | 7 << 76 | 2 << 62 | random.getrandbits(62))
    part = f"eventlog:log:60x60:{moment // 60000}"
    line = sealed(f'{identity} "theirs"') + b"\n"
    if not client.append(part, line):  # a minute has begun
        both.does("eventlog", "put", "log", "another minute")
        both.check(client.append(part, line), "append to a chunk")
    events = [event["data"] for event in both.lines("eventlog", "fetch", "log")]
    both.check("theirs" in events and set(texts) < set(events), f"a log the client put to: {events}")


def locks(both):
    client = both.client
    key = "lock:nightly"
    token = "a" + random_id()[1:]
    holder = json.dumps({"host": "elsewhere", "pid": 1, "user": "another", "note": "by hand",
                         "acquired_at": "2026-11-21T04:08:53.945Z"})
    both.check(client.add(key, f"{token} {holder}".encode(), 62), "taking a free lock")
    busy = both.run("lock", "acquire", "nightly")
    both.equal((busy.returncode, json.loads(busy.stdout)["holder"]["host"]), (75, "elsewhere"), "a lock the client holds")
    value, unique = client.gets(key)
    both.equal(value.split()[0].decode(), token, "the token")
    both.check(client.cas(key, value, unique, 120), "renewing a lock")
    both.check(json.loads(both.does("lock", "show", "nightly"))["held"], "a renewed lock is not held")
    stale = unique
    value, unique = client.gets(key)
    both.check(not client.cas(key, value, stale, 60), "an old cas unique renews")
    both.check(client.cas(key, value, unique, IN_THE_PAST), "releasing a lock")
    taken = json.loads(both.does("lock", "acquire", "nightly"))
    both.check(not client.add(key, f"{token} {{}}".encode(), 60), "a lock that mcds holds was taken")
    both.equal(client.get(key).split()[0].decode(), taken["token"], "mcds's token")
    both.does("lock", "release", "nightly", "--token", taken["token"])
    both.check(client.add(key, f"{token} {{}}".encode(), 60), "taking a lock that mcds released")
    both.check(not json.loads(both.run("lock", "release", "nightly", "--token", taken["token"]).stdout)["released"],
               "mcds released the client's lock")


def caches(both):
    script = 'printf "out\\n"; printf err >&2; exit 3'
    both.run("cache", "run", "--key", "report", "--ttl", "60s", "--cache-codes", "3", "--", "sh", "-c", script)
    head, output = both.client.get("cache:report").split(b"\n", 1)
    line, checksum = head.rsplit(b" *", 1)
    words = line.decode().split()
    both.equal(words[0], "K1", "what a cache entry is")
    both.equal(f"{zlib.crc32(output, zlib.crc32(line)):08x}", checksum.decode(), "a cache entry's checksum")
    both.equal(words[6:], ["3", "4", "3"], "exit code and lengths")
    both.equal(output, b"out\nerr", "a command's output")
    both.check(int(words[2]) <= int(words[3]) <= time.time() * 1000 < int(words[4]) <= int(words[5]), f"the times {words[2:6]}")
    both.check(both.client.delete("cache:report"), "invalidating")
    both.equal(both.run("cache", "show", "report").returncode, 1, "an entry the client removed")


def visitors(both):
    period = 300
    while period - time.time() % period < 2:
        time.sleep(0.1)
    both.does("visitors", "hit", "site")
    key = f"visitors:site:{period}:{int(time.time()) // period}"
    both.equal(both.client.incr(key, 1), 2, "a hit")
    both.equal(json.loads(both.does("visitors", "value", "site"))["current"], 2, "hits of both")


def main():
    mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
    for kind in (ThroughPymemcache, ThroughPylibmc):
        with tempfile.TemporaryDirectory(prefix="mcds-layout-") as directory, Memcacheds(directory) as memcacheds:
            servers = [memcacheds.on_kernel_port() for _ in range(3)]
            both = Both(mcds, kind(servers), servers)
            for test in (counters, json_arrays, journal_arrays, hashes, tables, event_logs, locks, caches, visitors):
                try:
                    test(both)
                except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
                    both.check(False, f"{test.__name__}: {error!r}")
    finish()


if __name__ == "__main__":
    main()
