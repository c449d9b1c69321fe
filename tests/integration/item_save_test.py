#!/usr/bin/env python3
"""What item save writes is what item load, any server and memcached-tool read; what must never come back does not; a save, a
load or a keep that is killed or fails leaves a whole file or the older one.

Usage: item_save_test.py BUILD_DIR [PART…]: functions of this file
"""
import base64
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish  # noqa: E402
import real_servers  # noqa: E402
from program import MCDS, environment, wait_for  # noqa: E402
from real_servers import ask, connected, end, start_memcached, statistics  # noqa: E402

KILLS = 30 if FULL else 10
SEED = int(os.environ.get("MCDS_TEST_SEED", "0")) or None
RANDOM = random.Random(SEED)
NOW = int(time.time())


class World:
    """Servers in a folder of their own, and what is run against them."""

    def __init__(self, directory):
        self.directory = directory
        self.paths = []
        self.running = {}

    def start(self, *flags, count=1):
        paths = [os.path.join(self.directory, f"s{len(self.paths) + i}") for i in range(count)]
        for path in paths:
            self.running[path] = start_memcached(path, *flags)
            self.paths.append(path)
        return paths

    def stop(self, path):
        end(self.running[path])

    def environment(self, paths):
        return environment(MCDS_SERVERS=",".join(f"unix:{path}" for path in paths), XDG_STATE_HOME=self.directory + "/state")

    def run(self, paths, *words, text=b"", **options):
        return subprocess.run([MCDS, *words], input=text, capture_output=True, timeout=120, check=False, env=self.environment(paths),
                              **options)

    def start_mcds(self, paths, *words, **options):
        return subprocess.Popen([MCDS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment(paths), **options)

    def file(self, name):
        return os.path.join(self.directory, name)


def made(count):
    """Items of many kinds, by key: value, flags, the end as a UNIX time or 0."""
    items = {}
    for i in range(count):
        key = b"bin \r\n%d" % i if i % 50 == 7 else b"key:%d" % i
        size = 1_000_000 if i % 5000 == 11 else RANDOM.choice([0, 1, 10, 100, 1000, 5000])
        value = RANDOM.randbytes(size) if i % 3 else b"END\r\nadd x 0 0 1\r\n%d" % i
        items[key] = (value, RANDOM.choice([0, 7, 2**32 - 1]), RANDOM.choice([0, NOW + 3600, NOW + 86400 * 29, NOW + 86400 * 45]))
    return items


def store(path, items):
    with connected(path) as file:
        for key, (value, flags, end) in items.items():
            file.write(b"ms %s %d b F%d T%d q\r\n%s\r\n" % (base64.b64encode(key), len(value), flags, end, value))
        file.write(b"mn\r\n")
        file.flush()
        answer = file.readline()
        assert answer == b"MN\r\n", answer


def stored(path, keys):
    found = {}
    with connected(path) as file:
        for key in keys:
            file.write(b"mg %s b v f t\r\n" % base64.b64encode(key))
            file.flush()
            words = file.readline().split()
            if words[0] == b"EN":
                continue
            value = file.read(int(words[1]) + 2)[:-2]
            told = {word[:1]: int(word[1:]) for word in words[2:] if word[:1] in (b"f", b"t")}
            found[key] = (value, told[b"f"], 0 if told[b"t"] < 0 else int(time.time()) + told[b"t"])
    return found


def same(one, other):
    return one[:2] == other[:2] and (one[2] == 0) == (other[2] == 0) and abs(one[2] - other[2]) <= 2


def together(paths, keys):
    found = {}
    for path in paths:
        found.update(stored(path, keys))
    return found


def summary(done):
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {}


def keys_in(file):
    """Of a saved file, read without mcds: it stands for every other reader. The first and the last are of the file itself, as are
    those between items that say which server the next were on."""
    with open(file, "rb") as saved:
        text = saved.read()
    keys, at = [], 0
    while at < len(text):
        line = text[at:text.index(b"\r\n", at)]
        words = line.split(b" ")
        plain = words[0] == b"add"
        size = int(words[4] if plain else words[2])
        keys.append(words[1] if plain else base64.b64decode(words[1]))
        at += len(line) + 2 + size + 2
        assert text[at - 2:at] == b"\r\n", line
    return [key for number, key in enumerate(keys) if number in (0, len(keys) - 1) or key != keys[0]]


def flush(*paths):
    real_servers.flush(*paths)
    time.sleep(1.1)  # what is stored in the second of a flush_all may go with it


def there_and_back(world):
    """Two servers' items in four, in another placement; fed to a server as they are; taken from memcached-tool."""
    items = made(6000)
    two, four = world.start(count=2), world.start(count=4)
    placed = world.run(two, "where", "-0", "-", text=b"\0".join(items)).stdout.split(b"\0")[:-1]
    for index, path in enumerate(two):
        store(path, {key: items[key] for key, line in zip(items, placed) if json.loads(line)["index"] == index})
    file = world.file("saved")
    done = world.run(two, "item", "save", file)
    check(done.returncode == 0 and summary(done)["saved"] == len(items), f"save: {done}")
    check(os.stat(file).st_mode & 0o777 == 0o600, "the saved file is for others to read")
    done = world.run(four, "--as", "dalli", "item", "load", file, "--even-astray")
    check(done.returncode == 0 and summary(done)["loaded"] == len(items) and summary(done)["whole"] is True, f"load: {done}")
    found = together(four, items)
    wrong = [key for key in items if key not in found or not same(items[key], found[key])]
    check(not wrong, f"{len(wrong)} of {len(items)} are not as they were, such as {wrong[:3]}")
    done = world.run(four, "--as", "dalli", "item", "show", "-", text=b"\n".join(key for key in items if b" " not in key))
    check(done.returncode == 0, "not all are where the client looks")
    done = world.run(four, "--as", "dalli", "item", "load", file, "--even-astray")
    check(done.returncode == 0 and (summary(done)["loaded"], summary(done)["there"]) == (0, len(items)), f"load again: {done.stdout}")
    done = world.run(four, "item", "load", file, "--dry-run")
    check(done.returncode == 0 and summary(done)["would_load"] == len(items), f"load --dry-run: {done}")
    fed(world, file, items)
    tool(world, {key: item for key, item in items.items() if b" " not in key})


def what_clients_read_wins(world):
    """Copies that a change of the list left on other servers were as likely to come back as the values that clients read."""
    three = world.start(count=3)
    keys = [f"k{number}" for number in range(400)]
    for pool, value in ((three[1:], "older"), (three, "newer")):
        done = world.run(pool, "item", "load", "-", "--overwrite", text="".join(f"add {key} 0 0 5\r\n{value}\r\n" for key in keys).encode())
        check(done.returncode == 0 and summary(done)["loaded"] == len(keys), f"{value}: {done}")
    file = world.file("saved")
    done = world.run(three, "item", "save", file)
    saved = summary(done)["saved"]
    check(done.returncode == 0 and saved > len(keys) + 50, f"save: no leftovers: {done}")
    flush(*three)
    done = world.run(three, "item", "load", file)
    check(done.returncode == 0 and summary(done)["loaded"] == saved, f"load: leftovers go back to their servers: {done}")
    done = world.run(three, "item", "get", "-", "-o", "value", text="\n".join(keys).encode())
    check(done.stdout.split() == [b"newer"] * len(keys), f"{done.stdout.split().count(b'older')} older values of {len(keys)}")


def fed(world, file, items):
    """As `nc` does it."""
    (path,) = world.start()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        with open(file, "rb") as saved:
            sender = threading.Thread(target=lambda: connection.sendall(saved.read() + b"mn\r\n"))
            sender.start()
            answer = b""
            while not answer.endswith(b"MN\r\n"):
                answer += connection.recv(65536)
            sender.join()
    check(set(answer.split()) <= {b"STORED", b"HD", b"MN"}, f"a server answers the file: {set(answer.split())}")
    found = stored(path, items)
    check(all(key in found and same(items[key], found[key]) for key in items), "a server that is fed the file has other items")
    check(ask(path, b"get " + keys_in(file)[0]) == b"END", "the record about the file stays on a server")


def tool(world, items):
    """Which cannot dump keys with spaces, and loses its place at them."""
    path, other = world.start(count=2)
    store(path, items)
    program = shutil.which("memcached-tool") or "/usr/share/memcached/scripts/memcached-tool"
    done = subprocess.run([program, path, "dump"], capture_output=True, timeout=60, check=False)
    check(done.returncode == 0, f"memcached-tool dump: {done.stderr}")
    done = world.run([other], "item", "load", "-", text=done.stdout)
    found = stored(other, items)
    check(done.returncode == 0 and b"the last record" in done.stderr and summary(done)["whole"] is None, f"memcached-tool dump: {done}")
    wrong = [key for key in items if key not in found or not same(items[key], found[key])]
    check(not wrong, f"memcached-tool dump | mcds item load: {len(wrong)} of {len(items)} are wrong, such as {wrong[:3]}")


def what_is_there_stays(world):
    (path,) = world.start()
    store(path, {b"old": (b"1", 0, 0), b"ends": (b"2", 0, NOW + 5000), b"p:1": (b"3", 0, 0)})
    file = world.file("stays")
    world.run([path], "item", "save", file)
    store(path, {b"old": (b"new", 0, 0)})
    done = world.run([path], "item", "load", file)
    check(done.returncode == 0 and stored(path, [b"old"])[b"old"][0] == b"new", f"load replaced what a client wrote: {done}")
    done = world.run([path], "item", "load", file, "--overwrite", "--max-ttl", "100s")
    found = stored(path, [b"old", b"ends"])
    check(done.returncode == 0 and found[b"old"][0] == b"1", f"--overwrite: {done}")
    check(all(0 < item[2] <= time.time() + 101 for item in found.values()), f"--max-ttl: {found}")
    flush(path)
    done = world.run([path], "item", "load", file, "--prefix", "p:")
    check(done.returncode == 0 and set(stored(path, [b"old", b"ends", b"p:1"])) == {b"p:1"}, f"load --prefix: {done}")
    done = world.run([path], "item", "load", "-", text=b"add gone 0 %d 1\r\nx\r\nadd stays 0 0 1\r\ny\r\n" % (NOW - 5))
    check(done.returncode == 0 and (summary(done)["expired"], summary(done)["loaded"]) == (1, 1), f"load of what has ended: {done}")
    for words in (["save", file, "--prefix", ""], ["load", file, "--prefix", ""], ["load", "-", "--strict"]):
        check(world.run([path], "item", *words).returncode == 64, f"item {words}: not 64")


def damaged_files(world):
    """Every cut of a file gives its first items and says so; whatever is changed, nothing but its items is stored."""
    (path,) = world.start()
    items = {b"k%d" % i: (b"add evil 0 0 1\r\nx\r\n" * (i % 3), i, 0) for i in range(12)}
    store(path, items)
    file = world.file("whole")
    world.run([path], "item", "save", file)
    with open(file, "rb") as saved:
        text = saved.read()
    order = keys_in(file)[1:-1]
    for cut in sorted(RANDOM.sample(range(len(text)), 40)) + [len(text)]:
        flushed = world.run([path], "item", "load", "-", "--dry-run", text=text[:cut])
        line = summary(flushed)
        check(flushed.returncode == (0 if cut in (0, len(text)) else 2), f"a file cut at {cut} of {len(text)}: {flushed}")
        check(line["whole"] is (True if cut == len(text) else None if cut == 0 else False), f"cut at {cut}: {line}")
        check(line["items"] <= len(order), f"cut at {cut}: {line}")
    for at in RANDOM.sample(range(len(text)), 40):
        changed = text[:at] + bytes([text[at] ^ 1]) + text[at + 1:]
        done = world.run([path], "item", "load", "-", "--dry-run", text=changed)
        check(done.returncode == 2 and summary(done)["whole"] is False, f"a byte changed at {at}: {done}")
    flush(path)
    cut = world.file("cut")
    with open(cut, "wb") as part:
        part.write(text[:len(text) // 2])
    done = world.run([path], "item", "load", cut, "--strict")
    check(done.returncode == 65 and not stored(path, order), f"--strict: {done}")
    done = world.run([path], "item", "load", cut)
    check(done.returncode == 2 and set(stored(path, [*order, b"evil"])) == set(order[:summary(done)["loaded"]]), f"a cut file: {done}")
    for text in (b"flush_all\r\n", b"set a 0 0 1\r\nx\r\n", b"delete k1\r\n", b"ms a 1 MS\r\nx\r\n", b"add a 0 0 5\r\nx\r\n", b"add a 0 0 -1\r\n"):
        done = world.run([path], "item", "load", "-", text=text)
        check(done.returncode == 2 and summary(done)["loaded"] == 0, f"{text}: {done}")


def compressed(world):
    """A name with .zst means zstd, both ways; what is cut off or damaged loads up to there and is named."""
    (path,) = world.start()
    items = made(3000)
    store(path, items)
    file, plain = world.file("saved.zst"), world.file("plain")
    done = world.run([path], "item", "save", file)
    subprocess.run(["zstd", "-dq", file, "-o", plain], check=True)
    check(done.returncode == 0 and world.run([path], "item", "load", plain, "--verify").returncode == 0, f"save to .zst: {done}")
    subprocess.run(["zstd", "-q", "-19", "-f", plain, "-o", world.file("other.zst")], check=True)
    for name in ("saved.zst", "other.zst"):
        flush(path)
        done = world.run([path], "item", "load", world.file(name))
        found = stored(path, items)
        check(done.returncode == 0 and all(key in found and same(found[key], item) for key, item in items.items()), f"load of {name}: {done}")
    with open(file, "rb") as saved:
        text = saved.read()
    for at in RANDOM.sample(range(1, len(text)), 20):
        for name, bad in (("cut.zst", text[:at]), ("bad.zst", text[:at] + bytes([text[at] ^ 1]) + text[at + 1:])):
            with open(world.file(name), "wb") as part:
                part.write(bad)
            done = world.run([path], "item", "load", world.file(name), "--dry-run")
            check(done.returncode == 2 and summary(done)["whole"] is False, f"{name} at {at} of {len(text)}: {done}")


def structures(world):
    """What is of one copy comes back; what never must does not, whatever the words."""
    paths = world.start(count=3)
    text = b"".join(b"member %d\n" % i for i in range(300))
    run = lambda *words, text=b"": world.run(paths, *words, text=text)  # noqa: E731
    run("table", "add", "members", "-", text=text)
    run("hash", "set", "fields", "a", "1")
    run("table", "add", "guests", "ann", "--ttl", "1h")
    run("array", "add", "list", "1", "2")
    run("array", "add", "large", "-", text=b"\n".join(b"%d " % i + b"x" * 900 for i in range(3000)))
    run("eventlog", "put", "log", "-", text=text)
    run("visitors", "hit", "site", "--id", "7")
    run("counter", "incr", "count", "5")
    run("counter", "incr", "sure", "5", "--exact")
    fetches = [["table", "fetch", "members"], ["hash", "fetch", "fields"], ["table", "fetch", "guests"], ["array", "fetch", "list"], ["array", "fetch", "large"],
               ["eventlog", "fetch", "log"], ["counter", "get", "count", "sure"]]
    before = [sorted(run(*words).stdout.splitlines()) for words in fetches]
    forbidden(world, paths)
    file = world.file("structures")
    done = run("item", "save", file)
    check(done.returncode == 0 and summary(done)["saved"] == 1, f"save without --structures: {done}")  # a number
    done = run("item", "save", file, "--structures")
    check(done.returncode == 0 and summary(done)["torn"] == 0 and summary(done)["structures"] >= 5, f"save --structures: {done}")
    bad = [key for key in keys_in(file) if re.search(rb"lock|fence|votes|[a-z][023]:|^cache|fortress", key)]
    check(not bad, f"saved what must never be: {bad[:5]}")
    check({b"locks", b"copies", b"cache"} <= {word.encode() for word in summary(done)["passed_over"]}, f"{summary(done)}")
    flush(*paths)
    done = run("item", "load", file)
    after = [sorted(run(*words).stdout.splitlines()) for words in fetches]
    for words, one, other in zip(fetches, before, after):
        check(one == other, f"mcds {words} after a load: {len(other)} lines instead of {len(one)}: {other[:2]}")
    probed = json.loads(run("where", "table:guests:v:ann", "--probe").stdout)
    check(any(3500 < (copy.get("ttl_s") or 0) <= 3600 for copy in probed["copies"]), f"the end of a member after a load: {probed}")
    check(done.returncode == 0 and b"gap" not in run("eventlog", "fetch", "log").stdout, f"load of structures: {done}")
    # Somebody else's file may have locks.
    done = run("item", "load", "-", text=b"add lock:night 0 0 57\r\n" + b'b7c1e0f2a94d4f6e {"host":"web3","pid":4711,"user":"deplo"}' [:57] + b"\r\n")
    check(summary(done)["loaded"] == 0 and summary(done)["passed_over"] == {"locks": 1}, f"load of a lock: {done}")


def many_torn(world):
    """Each structure that is not saved is named, however many there are: without cas none can be saved."""
    (path,) = world.start("-C")
    for number in range(30):
        world.run([path], "array", "add", f"a{number}", "x")
    file = world.file("torn")
    done = world.run([path], "item", "save", file, "--structures")
    named = {json.loads(line).get("structure") for line in done.stdout.splitlines()} - {None}
    check(done.returncode == 2 and named == {f"array a{number}" for number in range(30)}, f"named as torn: {sorted(named)}")
    with open(file, "rb") as saved:
        check(b'"torn_count":30,"torn":["array a0","array a1",' in saved.read(), "the file does not tell what it lacks")


def forbidden(world, paths):
    run = lambda *words: world.run(paths, *words)  # noqa: E731
    run("lock", "acquire", "night", "--ttl", "1h", "--fence")
    run("lock", "acquire", "several", "--ttl", "1h", "--copies", "3")
    run("lock", "acquire", "--key", "fortress", "--ttl", "1h")
    run("counter", "incr", "twice", "--copies", "2")
    run("table", "add", "twice", "x", "--copies", "2")
    run("hash", "set", "twice", "f", "x", "--copies", "2")
    run("cache", "run", "echo", "--", "echo", "x")
    run("table", "add", "dropped", "x")
    done = run("table", "drop", "dropped")
    check(done.returncode == 0, f"drop: {done}")


def by_itself(code):
    """The words of a program that runs this with the functions of this file."""
    return [sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}; sys.argv = {sys.argv[:2]!r}\nimport item_save_test as test\n{code}"]


def restarted_with(world, path, *commands):
    """For `item keep`: the server comes back empty, and clients write to it before anything is loaded."""
    script = world.file("gap.sh")
    with open(script, "w", encoding="ascii") as file:
        file.write("\n".join(["#!/bin/sh", shlex.join(by_itself(f"test.flush({path!r})")), *(f"{shlex.join((MCDS, *words))} >&2" for words in commands), ""]))
    return ["--on", f"unix:{path}", "--", "sh", script]


def named_like_structures(world):
    """An application's keys were taken for structures, cache entries and locks by their names, and were neither saved nor loaded."""
    (path,) = world.start()
    names = (b"myapp:cache:page%d", b"cache:page%d", b"shop:counter:%d", b"site:visitors:%d", b"user:table:%d", b"table:user:v:%d", b"t:array:%d",
             b"u:hash:%d", b"z:eventlog:%d", b"account:lock:%d", b"app:cachetag:%d", b"v:hash0:%d", b"my:lockserver:votes:%d", b"plain:%d")
    items = {name % i: (b"app value", 0, 0) for name in names for i in range(50)}
    items |= {b"counter:hits": (b"5", 2, 0), b"shop:counter:sold": (b"7", 0, 0)}  # as Python clients store numbers
    store(path, items)
    world.run([path], "array", "add", "jobs", "1")
    world.run([path], "table", "add", "members", "ann")
    for words, structures_there in ((["--structures"], 0), ([], 4)):
        file = world.file("named")
        done = world.run([path], "item", "save", file, *words)
        line = summary(done)
        check(done.returncode == 0 and line["saved"] == len(items) + 4 - structures_there and line["passed_over"].get("structures", 0) == structures_there
              and set(line["passed_over"]) <= {"structures"}, f"save {words}: {done}")
        flush(path)
        done = world.run([path], "item", "load", file)
        found = stored(path, items)
        check(done.returncode == 0 and found == items, f"load {words}: {len(found)} of {len(items)}: {done}")
    done = world.run([path], "item", "load", "-", "--overwrite", text=b"add myapp:cache:page1 0 0 5\r\nhello\r\n")
    check(summary(done)["loaded"] == 1 and stored(path, [b"myapp:cache:page1"])[b"myapp:cache:page1"][0] == b"hello", f"load of a dump: {done}")
    done = world.run([path], "item", "keep", "--full-ttl", *restarted_with(world, path))
    found = stored(path, items)
    check(done.returncode == 0 and len(found) == len(items) and "file" not in summary(done), f"keep: {len(found)} of {len(items)}: {done}")
    # What is not in the file is lost, and that is said.
    world.run([path], "array", "add", "jobs", "1")
    done = world.run([path], "item", "keep", *restarted_with(world, path))
    line = summary(done)
    check(done.returncode == 2 and os.path.exists(line.get("file", "")) and b"but on the server: 1 keys (structures)" in done.stderr, f"keep of a structure: {done}")
    # Once, keep of a namespace lost the keys of all others without a word.
    count = sum(not key.startswith(b"plain:") and b":votes:" not in key for key in items)
    done = world.run([path], "-n", "plain:", "item", "keep", *restarted_with(world, path))
    check(done.returncode == 2 and summary(done)["saved"] == 50 and "file" in summary(done) and b"%d keys (outside the namespace)" % count in done.stderr,
          f"keep of a namespace: {done}")


def written_before_the_load(world):
    """What clients wrote to a structure in the gap made all that it had before be dropped; it is united, or named and kept in the file."""
    (path,) = world.start("-m", "512")
    run = lambda *words, text=b"": world.run([path], *words, text=text)  # noqa: E731
    large = b"\n".join(b"%d " % i + b"x" * 900 for i in range(3000))
    run("array", "add", "jobs", "j1", "j2")
    run("array", "add", "large", "-", text=large)
    run("eventlog", "put", "log", "-", text=b"e1\ne2\ne3\n")
    run("table", "add", "members", "-", text=b"".join(b"m%d\n" % i for i in range(40)))
    run("table", "add", "many", "-", text=b"".join(b"%d%s\n" % (i, b"x" * 500) for i in range(20_000)))
    run("hash", "set", "fields", "a", "1")
    gap = [["array", "add", "jobs", "late"], ["array", "add", "large", "late"], ["eventlog", "put", "log", "late"], ["table", "add", "members", "late"],
           ["table", "add", "many", "late"], ["hash", "set", "fields", "late", "2"]]
    done = run("item", "keep", "--structures", *restarted_with(world, path, *gap))
    line = summary(done)
    check(done.returncode == 0 and line["united"] > 6 and line["structures_there"] == 0 and "file" not in line, f"keep: {done}")
    values = json.loads(run("array", "fetch", "jobs").stdout)["values"]
    check(values == ["j1", "j2", "late"], f"array: {values}")
    values = json.loads(run("array", "fetch", "large").stdout)["values"]
    check(len(values) == 3001 and values[-1] == "late", f"array with segments: {len(values)}, {values[-1:]}")
    for name, count in (("members", 41), ("many", 20_001)):
        checked = json.loads(run("table", "check", name).stdout)
        check((checked["complete"], checked["count"]) == (True, count), f"table: {checked}")
    done = run("hash", "fetch", "fields", "-o", "value")
    check(done.returncode == 0 and sorted(done.stdout.splitlines()) == [b"a\t1", b"late\t2"], f"hash: {done}")
    done = run("eventlog", "fetch", "log", "-o", "value")
    check(sorted(done.stdout.split()) == [b"e1", b"e2", b"e3", b"late"] and done.stderr == b"", f"event log: {done}")
    listed = run("item", "list", "-o", "value").stdout.splitlines()
    segments = [key for key in listed if b"array:large:s:" in key]
    named = json.loads(run("where", "array:large", "--probe").stdout)
    check(len(segments) <= 8, f"segments that nothing names: {len(segments)}, {named}")
    counted_before_the_load(run, world, path)


def counted_before_the_load(run, world, path):
    """Two counts cannot be told from one that was loaded twice: the newer stays."""
    flush(path)
    run("counter", "incr", "hits", "100")
    run("counter", "incr", "sure", "100", "--exact")
    run("visitors", "hit", "site")
    run("visitors", "hit", "site")
    gap = [["counter", "incr", "hits"], ["counter", "incr", "sure", "--exact"], ["visitors", "hit", "site"]]
    done = run("item", "keep", "--structures", *restarted_with(world, path, *gap))
    line = summary(done)
    check(done.returncode == 2 and line["structures_there"] == 3 and b"counter hits, counter sure, visitors site" in done.stderr, f"keep of counters: {done}")
    done = run("item", "load", line["file"])
    named = [told["structure"] for told in map(json.loads, done.stdout.splitlines()) if "structure" in told]
    check(done.returncode == 2 and named == ["counter hits", "counter sure", "visitors site"], f"load of counters: {done}")
    done = run("item", "load", line["file"], "--overwrite")
    check(done.returncode == 0 and run("counter", "get", "hits", "sure", "-o", "value").stdout.split() == [b"100", b"100"], f"load --overwrite: {done}")


def structures_outlive_the_bound(world):
    """--max-ttl is for items: what is put into a loaded structure would end with what was loaded of it."""
    paths = world.start()
    run = lambda *words: world.run(paths, *words)  # noqa: E731
    for words in (("array", "add", "a", "1"), ("table", "add", "t", "m"), ("hash", "set", "h", "f", "v"), ("item", "set", "i", "x"),
                  ("array", "add", "j", "--encoding", "json", "1"), ("counter", "incr", "c"), ("eventlog", "put", "l", "e"), ("visitors", "hit", "v")):
        run(*words)
    file = world.file("bounded")
    run("item", "save", file, "--structures")
    flush(*paths)
    check(run("item", "load", file, "--max-ttl", "1s").returncode == 0, "load with a bound")
    parts = stored(*paths, [key for key in run("item", "list", "-o", "value").stdout.split() if key != b"i"])
    check(len(parts) > 9 and all(item[2] == 0 or item[2] > time.time() + 60 for item in parts.values()), f"parts end with the bound: {parts}")
    for words in (("array", "add", "a", "2"), ("table", "add", "t", "n"), ("hash", "set", "h", "g", "w")):
        check(run(*words).returncode == 0, f"{words} after the load")
    wait_for(lambda: b'"found":false' in run("item", "get", "i").stdout, "an item ends")
    check(json.loads(run("array", "fetch", "a").stdout)["values"] == ["1", "2"], "an array ended with the bound")
    for words, lines in ((("table", "fetch", "t"), {b"m", b"n"}), (("hash", "fetch", "h"), {b"f\tv", b"g\tw"})):
        done = run(*words, "-o", "value")
        check(done.returncode == 0 and set(done.stdout.split(b"\n")[:-1]) == lines, f"{words} after the bound: {done}")
    # Once, a field with another value was not reported.
    run("hash", "set", "h", "f", "other")
    done = run("item", "load", file, "--prefix", "hash:h")
    check(done.returncode == 2 and b'"structure":"hash h"' in done.stdout and run("hash", "get", "h", "f", "-o", "value").stdout.strip() == b"other", f"a field: {done}")


def loaded_over_another(world):
    """Loaded where a structure of that name goes on, on several servers; and again, which changes nothing more."""
    paths = world.start(count=3)
    run = lambda *words, text=b"": world.run(paths, *words, text=text)  # noqa: E731
    run("table", "add", "t", "-", text=b"".join(b"m%d\n" % i for i in range(30)))
    run("hash", "set", "h", "f1", "v1")
    run("array", "add", "a", "1", "2")
    run("eventlog", "put", "e", "one")
    file = world.file("over")
    run("item", "save", file, "--structures")
    flush(*paths)
    run("table", "add", "t", "other")
    run("hash", "set", "h", "f1", "newer")
    run("array", "add", "a", "3")
    run("eventlog", "put", "e", "two")
    for turn in range(2):
        done = run("item", "load", file)
        told = [json.loads(line) for line in done.stdout.splitlines() if b'"hash h"' in line]
        check(done.returncode == 2 and len(told) == 1, f"load {turn}: the field that differs is not reported: {done}")
        checked = json.loads(run("table", "check", "t").stdout)
        check((checked["complete"], checked["count"]) == (True, 31), f"load {turn}: table: {checked}")
        check(run("hash", "get", "h", "f1", "-o", "value").stdout == b"newer", f"load {turn}: the newer field does not stay")
        values = json.loads(run("array", "fetch", "a").stdout)["values"]
        check(values == ["1", "2", "3"], f"load {turn}: array: {values}")
        done = run("eventlog", "fetch", "e", "-o", "value")
        check(done.stdout.split() == [b"one", b"two"] and done.stderr == b"", f"load {turn}: event log: {done}")
    done = run("item", "load", file, "--overwrite")
    checked = json.loads(run("table", "check", "t").stdout)
    check(done.returncode == 0 and (checked["complete"], checked["count"]) == (True, 31), f"load --overwrite: {checked}, {done}")
    check(run("hash", "get", "h", "f1", "-o", "value").stdout == b"v1" and b'"3"' not in run("array", "fetch", "a").stdout, "load --overwrite: not replaced")


def selected_structures(world):
    """A pattern for the name of a structure saved its root with a chance part of the rest, and called that a structure."""
    (path,) = world.start()
    run = lambda *words, text=b"": world.run([path], *words, text=text)  # noqa: E731
    run("array", "add", "large2", "-", text=b"\n".join(b"%d " % i + b"x" * 900 for i in range(3000)))
    run("table", "add", "todo", "-", text=b"".join(b"m%d\n" % i for i in range(40)))
    run("eventlog", "put", "log", "one", "two")
    store(path, {b"array:app:v": (b"x", 0, 0), b"todo:v:1": (b"x", 0, 0)})
    everything = run("item", "list", "-o", "value").stdout.splitlines()
    whole, part = world.file("all"), world.file("part")
    run("item", "save", whole, "--structures")
    for words, start in ((["--match", "array:*2"], b"array:large2"), (["--match", "table:todo"], b"table:todo"), (["--prefix", "table:todo:i"], b"table:todo"),
                         (["--match", "eventlog:log:conf"], b"eventlog:log"), (["--match", "table:todo:v:*"], b"nothing"), (["--match", "*:v*"], b"nothing")):
        wanted = [key for key in everything if key.startswith(start) or (words[1] == "*:v*" and key in (b"array:app:v", b"todo:v:1"))]
        done = run("item", "save", part, "--structures", *words)
        saved = keys_in(part)[1:-1]
        check(done.returncode == 0 and sorted(saved) == sorted(wanted), f"save {words}: {len(saved)} of {len(wanted)} keys: {done}")
        done = run("item", "load", whole, "--dry-run", *words)
        check(summary(done)["would_load"] == len(wanted), f"load {words}: {len(wanted)}: {done}")


def written_meanwhile(world):
    """Structures that are written to while they are saved: each as of one moment, or named."""
    (path,) = world.start()
    names = 500 if KILLS == 30 else 40
    ends = threading.Event()
    files = []

    def write(first):
        # Members in their order, so that one moment has no hole.
        for number in range(1, 100_000):
            for name in range(first, names, 2):
                if ends.is_set():
                    return
                world.run([path], "table", "add", f"t{name}", str(number))
                world.run([path], "array", "add", f"a{name}", str(number))

    for name in range(names):
        world.run([path], "table", "add", f"t{name}", "0")
        world.run([path], "array", "add", f"a{name}", "0")
    threads = [threading.Thread(target=write, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(1.5)
    torn = []
    for turn in range(3):
        files.append(world.file(f"written{turn}"))
        # Where reading takes long, what was listed twice alike changes before it is read.
        slow = ["--rate", "200"] if turn == 2 else []
        done = world.run([path], "item", "save", files[-1], "--structures", *slow)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        torn.append({line["structure"] for line in lines if "structure" in line})
        check(all(line["reason"] == "changed" for line in lines if "structure" in line), f"{lines}")
        check(done.returncode == (2 if torn[-1] or lines[-1]["vanished"] else 0), f"save while written to: {done}")
    ends.set()
    for thread in threads:
        thread.join()
    loaded = 0
    for file, named in zip(files, torn):
        flush(path)
        world.run([path], "item", "load", file)
        for name in range(names):
            table = sorted(map(int, world.run([path], "table", "fetch", f"t{name}", "-o", "value").stdout.split()))
            array = list(map(int, json.loads(world.run([path], "array", "fetch", f"a{name}").stdout).get("values", [])))
            for what, numbers in ((f"table t{name}", table), (f"array a{name}", array)):
                check(numbers == list(range(len(numbers))), f"{what} is of no one moment: {numbers}")
                check(bool(numbers) != (what in named), f"{what}: {len(numbers)} elements, named: {what in named}")
                loaded += bool(numbers)
    check(loaded > 0, "nothing was saved of what is written to")


def killed(world):
    """Killed at any point, save leaves the older file or the new one, and nothing else; load is run again."""
    (path,) = world.start()
    items = {b"key:%d" % i: (b"x" * 1000, 0, 0) for i in range(20_000)}
    store(path, items)
    folder = world.file("folder")
    os.mkdir(folder)
    file = os.path.join(folder, "saved")
    began = time.monotonic()
    check(world.run([path], "item", "save", file).returncode == 0, "save")
    longest = time.monotonic() - began
    for _ in range(KILLS):
        process = world.start_mcds([path], "item", "save", file)
        time.sleep(RANDOM.uniform(0, longest * 1.2))
        process.kill()
        process.communicate()
        done = world.run([path], "item", "load", file, "--verify")
        check(done.returncode == 0 and summary(done)["items"] == len(items), f"after a save that was killed: {done}")
    left = [name for name in os.listdir(folder) if name != "saved"]
    check(len(left) <= 1, f"saves that were killed left {left}")
    world.run([path], "item", "save", file)
    flush(path)
    for _ in range(KILLS):
        process = world.start_mcds([path], "item", "load", file)
        time.sleep(RANDOM.uniform(0, longest))
        process.kill()
        process.communicate()
    done = world.run([path], "item", "load", file)
    check(done.returncode == 0 and len(stored(path, items)) == len(items), f"load after loads that were killed: {done}")


def without_room(world):
    (path,) = world.start()
    store(path, {b"key:%d" % i: (b"x" * 1000, 0, 0) for i in range(5000)})
    file = world.file("older")
    with open(file, "wb") as older:
        older.write(b"older")
    limit = resource.RLIMIT_FSIZE
    done = world.run([path], "item", "save", file, preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                                                                       resource.setrlimit(limit, (1 << 20, 1 << 20))))
    with open(file, "rb") as older:
        check(done.returncode == 73 and older.read() == b"older", f"save without room: {done}")
    link = world.file("link")
    os.symlink(file, link)
    done = world.run([path], "item", "save", link)
    with open(file, "rb") as older:
        check(done.returncode == 73 and older.read() == b"older", f"save through a link: {done}")
    for nameless in ("", world.directory + "/"):  # a variable that is empty: nothing is listed for it
        done = world.run([path], "item", "save", nameless, "-v")
        check(done.returncode == 73 and b"give the name of a file" in done.stderr and b"item dump" not in done.stderr, f"save: {done}")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([MCDS, "item", "save", "-"], stdout=full, stderr=subprocess.PIPE, env=world.environment([path]),
                              timeout=60, check=False)
    check(done.returncode == 74, f"save - to a full device: {done}")


def outdated_structures(world):
    """What was written to another server while the right one was out of the list never takes the place of the current value."""
    three = world.start(count=3)
    names, others = [f"n{i}" for i in range(10)], {}
    for name in names:
        for key, old, new in ((f"hash:{name}:v:f", ("hash", "set", name, "f", "OLD"), ("hash", "set", name, "f", "NEW")),
                              (f"array:{name}", ("array", "add", name, "OLD"), ("array", "add", name, "NEW"))):
            owner = json.loads(world.run(three, "where", key).stdout)["server"]
            others[key] = [path for path in three if f"unix:{path}" != owner]
            check(world.run(others[key], *old).returncode == 0, f"{old}")
            check(world.run(three, *new).returncode == 0, f"{new}")
    world.run(three, "counter", "incr", "-", text=b"".join(b"page%d\n" % i for i in range(200)))  # the profile is beyond doubt
    file = world.file("outdated")
    done = world.run(three, "item", "save", file, "--structures")
    check(done.returncode == 0, f"save: {done}")
    for load in ((), ("--overwrite",)):
        flush(*three)
        done = world.run(three, "item", "load", file, *load)
        for name in names:
            field = world.run(three, "hash", "get", name, "f", "-o", "value").stdout
            values = world.run(three, "array", "fetch", name, "-o", "value").stdout
            check((field, values) == (b"NEW", b"NEW\n"), f"load {load}, {name}: {field} {values} {done}")


def into_a_small_server(world):
    """A load that makes the server evict, which begins with what was loaded first, is no success."""
    (large,), (small,) = world.start("-m", "64"), world.start("-m", "2")
    store(large, {b"key:%d" % i: (b"x" * 3000, 0, 0) for i in range(5000)})
    file = world.file("evicting")
    world.run([large], "item", "save", file)
    done = world.run([small], "item", "load", file)
    check(done.returncode == 2 and b"the server evicted" in done.stderr, f"load into a small server: {done}")
    flush(small)
    done = world.run([small], "item", "load", file, "--dry-run")
    check(done.returncode == 0 and done.stderr == b"", f"load --dry-run: {done}")
    before = count(large, "cmd_set")
    slow = world.start_mcds([large], "item", "load", file, "--overwrite", "--rate", "2000/s")
    wait_for(lambda: count(large, "cmd_set") > before, "a load has begun")
    flush(large)
    said = slow.communicate(timeout=120)[1]
    check(slow.returncode == 2 and b"was flushed" in said, f"flushed during a load: {slow.returncode} {said}")


def sick_servers(world):
    one, other = world.start(count=2)
    items = {b"key:%d" % i: (b"x" * 500, 0, 0) for i in range(4000)}
    store(one, items)
    store(other, items)
    file = world.file("sick")
    world.running[other].send_signal(signal.SIGSTOP)
    done = world.run([one, other], "item", "save", file, "--timeout", "300ms")
    world.running[other].send_signal(signal.SIGCONT)
    check(done.returncode == 69 and summary(done)["saved"] == len(items), f"save while a server stands still: {done}")
    done = world.run([one], "item", "load", file, "--verify")
    check(done.returncode == 0 and summary(done)["about"]["complete"] is False, f"the file of such a save: {done}")
    world.stop(other)
    flush(one)
    done = world.run([one, other], "--as", "dalli", "item", "load", file, "--even-astray")
    line = summary(done)
    check(done.returncode in (69, 80) and line["loaded"] + line["failed"] + line["unknown"] + line["astray"] == len(items) and 0 < line["loaded"],
          f"load while a server is down: {done}")
    done = world.run([other], "item", "save", world.file("sick"))
    check(done.returncode == 69 and summary(done)["file"] is None and summary(done)["bytes"] == 0, f"a save that wrote no file names one: {done}")
    done = world.run([one, other], "item", "save", file, "--on", f"unix:{other}")
    check(done.returncode == 69 and summary(done)["file"] is None, f"a save of a server that does not answer names a file: {done}")
    done = world.run([one], "item", "load", file, "--verify")
    check(done.returncode == 0 and summary(done)["items"] == len(items), "a save of nothing replaced a file")
    large = world.file("large")
    (roomy,) = world.start("-I", "4m")
    store(roomy, {b"large": (b"x" * 3_000_000, 0, 0)})
    world.run([roomy], "item", "save", large)
    store(one, {b"large": (b"small", 0, 0)})
    done = world.run([one], "item", "load", large, "--overwrite")
    check(done.returncode == 76 and stored(one, [b"large"])[b"large"][0] == b"small", f"load of what is too large: {done}")
    (full,) = world.start("-M", "-m", "4")
    store(one, {b"room:%d" % i: (b"x" * 100_000, 0, 0) for i in range(100)})
    world.run([one], "item", "save", file)
    done = world.run([full], "item", "load", file)
    check(done.returncode == 76 and summary(done)["failed"] > 0 and summary(done)["loaded"] > 0, f"load into a full server: {done}")


def ends_midway(world):
    """A server that dies or stands still in the middle: what is missing is counted, no file claims to be whole, and a second run is."""
    one, other = world.start(count=2)
    items = {b"key:%d" % i: (b"x" * 500, 0, 0) for i in range(8000)}
    whole, part = world.file("whole"), world.file("part")

    def begin(paths, *words):
        """Till the middle of `words`, then the other server ends or stops, and how that ends."""
        what = "cmd_get" if words[0] == "save" else "cmd_set"
        before = count(other, what)
        process = world.start_mcds(paths, "item", *words, "--rate", "12000/s", "--timeout", "1s")
        wait_for(lambda: count(other, what) > before, f"{words} has begun")
        (world.stop if how == "dies" else lambda path: world.running[path].send_signal(signal.SIGSTOP))(other)
        out, err = process.communicate(timeout=60)
        if how == "dies":
            os.unlink(other)
            world.running[other] = start_memcached(other)
        else:
            world.running[other].send_signal(signal.SIGCONT)
        return process.returncode, json.loads((out or err).splitlines()[-1]), err

    for how in ("dies", "stands still"):
        flush(one, other)
        store(one, items)
        store(other, items)
        world.run([one, other], "item", "save", whole)
        store(other, items)
        code, line, err = begin([one, other], "save", part)
        sums = line["saved"] + line["expired"] + line["vanished"] + line["failed"]
        check(code == 69 and sums == line["keys"] == 2 * len(items) and line["failed"] > 0, f"save while a server {how}: {code}, {line}, {err}")
        about = summary(world.run([one], "item", "load", part, "--verify"))["about"]
        check(about["failed"] == line["failed"], f"the file when a server {how}: {about}")
        if how == "dies":
            store(other, items)
        done = world.run([one, other], "item", "save", part)
        check(done.returncode == 0 and summary(done)["saved"] == 2 * len(items), f"save again after a server {how}: {done}")
        flush(one, other)
        code, line, err = begin([one, other], "load", whole)
        sums = line["loaded"] + line["there"] + line["failed"] + line["unknown"]
        check(code in (69, 80) and sums == line["items"] and line["loaded"] < line["items"], f"load while a server {how}: {code}, {line}, {err}")
        done = world.run([one, other], "item", "load", whole)
        check(done.returncode == 0 and set(together([one, other], items)) == set(items), f"load again after a server {how}: {done}")


def kept(world):
    (path,) = world.start()
    items = {b"key:%d" % i: (b"x" * 100, 0, [0, NOW + 500, NOW + 86400][i % 3]) for i in range(5000)}
    restart = ["sh", "-c", f'kill {{}}; while kill -0 {{}} 2>/dev/null; do sleep 0.02; done; rm -f {path}; exec memcached -s {path} -d -u root -t 1 '
               f'-P {world.file("pid")}']

    def command():
        pid = world.running[path].pid if world.running[path].poll() is None else int(open(world.file("pid"), encoding="ascii").read())
        if world.running[path].poll() is None:
            # Nobody else waits for it.
            threading.Thread(target=world.running[path].wait).start()
        return [word.replace("{}", str(pid)) for word in restart]

    state = world.file("state/mcds")
    on = ["--on", f"unix:{path}"]
    store(path, items)
    done = world.run([path], "item", "keep", *on, "--", *command())
    line = summary(done)
    found = stored(path, items)
    check(done.returncode == 0 and line["restarted"] and line["loaded"] == len(items) == len(found), f"keep: {done}, {len(found)} are there")
    check(all(0 < item[2] <= time.time() + 601 for item in found.values()), "keep: a ttl is longer than ten minutes")
    check(os.listdir(state) == [], f"keep leaves {os.listdir(state)}")
    file = world.file("kept")
    store(path, items)
    done = world.run([path], "item", "keep", *on, "--full-ttl", "--file", file, "--", *command())
    found = stored(path, items)
    check(done.returncode == 0 and os.path.exists(file) and all(same(found[key], items[key]) for key in items), f"keep --full-ttl: {done}")
    done = world.run([path], "item", "keep", *on, "--", "sh", "-c", "exit 7")
    left = os.listdir(state)
    check(done.returncode == 7 and len(left) == 1 and left[0].encode() in done.stderr, f"keep, the command fails: {done}, left {left}")
    done = world.run([path], "item", "load", os.path.join(state, left[0]), "--verify")
    check(done.returncode == 0 and summary(done)["items"] == len(items), f"what is left then: {done}")
    nothing_is_restarted_that_cannot_be_saved(world, path, on)
    kept_under_load(world, path, on, command)
    killed_keep(world, path, on, command)
    interrupted_keep(world, path, on, command, items)
    before = len(os.listdir(state))
    pid = command()[2].split(";")[0]
    done = world.run([path], "item", "keep", *on, "--wait", "300ms", "--", "sh", "-c", pid)
    check(done.returncode == 69 and b"item load" in done.stderr and len(os.listdir(state)) == before + 1, f"keep, no server comes back: {done}")
    done = world.run([path], "item", "keep", *on, "--", "touch", world.file("ran"))
    check(done.returncode == 69 and not os.path.exists(world.file("ran")), f"keep of a server that is down: {done}")


def stored_by_the_binary_protocol(world):
    """Servers repeat such keys as they are, with spaces and line ends: nobody's answer is lost by that."""
    (path,) = world.start()
    keys = [b"k sp ace", b"k VA 2 f0", b"k line\nend\r\nEN", b"k\0\x7f"]
    store(path, {b"k%d" % i: (b"x", 0, 0) for i in range(300)})
    for key in keys:
        binary_set(path, key, b"v")
    file = world.file("binary.saved")
    done = world.run([path], "item", "save", file)
    check(done.returncode == 0 and summary(done)["saved"] == 300 + len(keys), f"save: {done}")
    done = world.run([path], "item", "list", "--prefix", "k", "--digest")
    lines = done.stdout.splitlines()
    check(done.returncode == 0 and sum(b'"digest"' in line for line in lines) == 300 + len(keys), f"list --digest: {done}")
    done = world.run([path], "item", "remove", "--prefix", "k", "-y")
    check(done.returncode == 0 and summary(done)["removed"] == 300 + len(keys), f"remove: {done}")
    done = world.run([path], "item", "load", file)
    check(done.returncode == 0 and all(stored(path, [key])[key][0] == b"v" for key in keys), f"load: {done}")


def binary_set(path, key, value):
    with connected(path) as file:
        file.write(struct.pack(">BBHBBHIIQII", 0x80, 1, len(key), 8, 0, 0, 8 + len(key) + len(value), 0, 0, 0, 0) + key + value)
        file.flush()
        check(file.read(24)[6:8] == b"\0\0", "a key of the binary protocol is not stored")


def nothing_is_restarted_that_cannot_be_saved(world, path, on):
    """A key that only the binary protocol can carry would be lost: the command does not run."""
    binary_set(path, b"two words " * 20, b"v")
    done = world.run([path], "item", "keep", *on, "--", "touch", world.file("unsaved"))
    check(done.returncode == 69 and not os.path.exists(world.file("unsaved")), f"keep of what cannot be saved: {done}")
    flush(path)


def kept_under_load(world, path, on, command):
    """What clients write after the restart is newer than what is loaded."""
    ends = threading.Event()
    written = {}

    def write():
        number = 0
        while not ends.is_set():
            number += 1
            try:
                with connected(path) as file:
                    for _ in range(50):
                        key = b"key:%d" % RANDOM.randrange(5000)
                        file.write(b"set %s 0 0 %d\r\n%d\r\n" % (key, len(str(number)), number))
                        file.flush()
                        if file.readline() == b"STORED\r\n":
                            written[key] = b"%d" % number
            except OSError:
                written.clear()  # of the server that was
                time.sleep(0.01)

    writer = threading.Thread(target=write)
    words = command()
    writer.start()
    done = world.run([path], "item", "keep", *on, "--", *words)
    ends.set()
    writer.join()
    check(done.returncode == 0, f"keep under load: {done}")
    found = stored(path, written)
    stale = [key for key, value in written.items() if key not in found or found[key][0] != value]
    check(not stale, f"keep under load: {len(stale)} of {len(written)} newer values are gone: {done}")


def kept_in_a_namespace(world):
    """A structure that clients write to before it is loaded is told, and its saved contents stay."""
    (path,) = world.start()
    for namespace in ([], ["-n", "app:"]):
        write = [*namespace, "hash", "set", "settings", "a"]
        flush(path)
        world.run([path], *write, "before")
        done = world.run([path], *namespace, "item", "keep", "--structures", *restarted_with(world, path, [*write, "after"]))
        line = summary(done)
        check(done.returncode == 2 and line["structures_there"] == 1 and b"hash settings" in done.stderr, f"keep {namespace}: {done}")
        done = world.run([path], "item", "load", line.get("file", "none"), "--verify")
        check(done.returncode == 0 and summary(done)["items"] > 0, f"keep {namespace}: what is left: {done}")


def kept_while_there_is_room(world):
    """What clients write to a full server while it is away is newer than what is loaded, and is not evicted for it."""
    (path,) = world.start("-m", "16")
    value = b"x" * 10_000
    items = {b"key:%d" % i: (value, 0, 0) for i in range(1200)}
    store(path, items)
    new = {b"new:%d" % i: (value, 0, 0) for i in range(600)}
    gap = by_itself(f"test.flush({path!r})\ntest.store({path!r}, {{b'new:%d' % i: (b'x' * 10000, 0, 0) for i in range(600)}})")
    done = world.run([path], "item", "keep", "--on", f"unix:{path}", "--", *gap)
    line, found = summary(done), stored(path, new)
    check(done.returncode == 0 and line["no_room"] > 0 and line["loaded"] + line["no_room"] == line["saved"] == len(items), f"keep, full: {done}")
    check(os.path.exists(line.get("file", "")) and f"{line['no_room']} items had no room; they are in {line['file']}".encode() in done.stderr,
          f"keep, full: what was not loaded is kept: {done}")
    check(len(found) >= len(new) - 64, f"keep, full: {len(found)} of {len(new)} newer items are left: {done}")
    file = world.file("late.saved")
    with open(file, "wb") as late:
        late.write(b"add a 0 0 1\r\nx\r\nadd b 0 99999999999 1\r\ny\r\nadd c 0 0 1\r\nz\r\n")
    for words in (["--dry-run"], []):
        done = world.run([path], "item", "load", file, *words)
        check(done.returncode == 0, f"load of an item that ends after 2038: {done}")
    check(len(stored(path, [b"a", b"b", b"c"])) == 3, "an item that ends after 2038 is loaded, and what comes behind it")


def interrupted_keep(world, path, on, command, items):
    """A signal while it loads: keep names the file, and the command that it prints loads the rest into this server."""
    items = dict(list(items.items())[:2000])
    flush(path)
    store(path, items)
    file = world.file("interrupted")
    process = world.start_mcds([path], "item", "keep", *on, "--rate", "500/s", "--file", file, "--", *command())
    wait_for(lambda: process.poll() is not None or os.path.exists(file) and answers(path) and 0 < held_by(path) < len(items))
    process.terminate()
    out, err = process.communicate()
    message = json.loads(err.splitlines()[-1])["error"]["message"]
    check(process.returncode == -signal.SIGTERM and out == b"" and message.startswith("not finished: interrupted; "), f"keep, interrupted: {process.returncode} {err}")
    words = shlex.split(message.split(": ", 2)[2])
    done = world.run(["/nowhere"], *words[1:])
    check(done.returncode == 0 and set(stored(path, items)) == set(items), f"what an interrupted keep says: {words} {done}")


def count(path, name):
    return int(statistics(path)[name])


def held_by(path):
    """How many items; 0 while it does not answer."""
    try:
        return count(path, "curr_items")
    except (OSError, KeyError):
        return 0


def killed_keep(world, path, on, command):
    """Killed at any point, keep leaves a whole file or none, and its command goes on: no server stays down for it."""
    state = world.file("state/mcds")
    began = time.monotonic()
    world.run([path], "item", "keep", *on, "--", *command())
    longest = time.monotonic() - began
    for name in os.listdir(state):
        os.unlink(os.path.join(state, name))
    for _ in range(KILLS // 2):
        count = len(os.listdir(state))
        words = command()
        process = world.start_mcds([path], "item", "keep", *on, "--", *words)
        time.sleep(RANDOM.uniform(0, longest))
        process.kill()
        process.communicate()
        wait_for(lambda: answers(path), "a server is back although keep was killed")  # else it stays down
        files = os.listdir(state)
        check(len(files) <= count + 1, f"a killed keep left {files}")
        for name in files:
            done = world.run([path], "item", "load", os.path.join(state, name), "--verify")
            check(done.returncode == 0, f"what a killed keep left: {done}")


def answers(path):
    try:
        return ask(path, "version").startswith(b"VERSION")
    except OSError:
        return False


def main():
    parts = (there_and_back, what_clients_read_wins, what_is_there_stays, damaged_files, compressed, structures, many_torn,
             named_like_structures, written_before_the_load, structures_outlive_the_bound, loaded_over_another, selected_structures,
             written_meanwhile, killed, without_room, outdated_structures, into_a_small_server, sick_servers, ends_midway, kept,
             kept_in_a_namespace, kept_while_there_is_room, stored_by_the_binary_protocol)
    for part in [part for part in parts if not sys.argv[2:] or part.__name__ in sys.argv[2:]]:
        with tempfile.TemporaryDirectory() as directory:
            world = World(directory)
            try:
                part(world)
            finally:
                end(*world.running.values())
                pid = os.path.join(directory, "pid")
                if os.path.exists(pid):
                    subprocess.run(["kill", open(pid, encoding="ascii").read().strip()], check=False)
    finish()


if __name__ == "__main__":
    main()
