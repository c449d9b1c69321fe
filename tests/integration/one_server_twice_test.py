#!/usr/bin/env python3
"""A server has two names, or is also behind a proxy. Both copies of an item were read, found alike, and the one that was removed as the old
one was the only one.

Usage: one_server_twice_test.py BUILD_DIR
"""
import os
import socket
import sys
import time
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import answers
from real_servers import Servers, connected, end, items, start_at, start_twemproxy

ITEMS = 300


def list_of(paths):
    return ",".join("unix:" + path for path in paths)


def store(path, keys):
    with connected(path) as file:
        file.write(b"".join(b"set %s 3 0 5\r\nvalue\r\n" % key for key in keys))
        file.flush()
        for key in keys:
            check(file.readline() == b"STORED\r\n", f"{key} is not stored")


def spelled_otherwise():
    """From a list to the same servers by other names: nothing moves, and nothing goes."""
    with Servers(3) as servers:
        paths = servers.paths
        others = [path + "-again" for path in paths]
        for path, other in zip(paths, others):
            os.symlink(path, other)
        profile = ["--as", "gomemcache"]
        elements = "".join(f'"{"x" * 100}{number}"\n' for number in range(30000))  # more than one item holds
        check(answers(list_of(paths), *profile, "array", "add", "jobs", "-", input=elements)[0] == 0, "no array")
        keys = [f"key{number}" for number in range(ITEMS)]
        places = answers(list_of(paths), *profile, "where", "-", input="\n".join(keys))[1]
        for path in paths:
            store(path, [line["key"].encode() for line in places if line["server"] == "unix:" + path])
        before = items(paths)
        check(any(b":s:" in key for _, key in before), "the array has no segments")
        status, lines, _ = answers(list_of(paths), *profile, "ring", "move", "--to", list_of(others))
        check(status == 0 and lines[-1]["copied"] == 0, f"moved: {lines[-1]}")
        prune = [list_of(others), *profile, "where", "--prune", "--live", "--moved-from", list_of(paths)]
        for how in ("--dry-run", "--yes"):
            status, lines, error = answers(*prune, how)
            removed = lines[-1].get("removed", lines[-1].get("would_remove"))
            check(status == 2 and removed == 0 and lines[-1]["failed"] + lines[-1]["differs"] == len(before), f"{how}: {status} {lines[-1]} {error}")
            check(lines[0]["left"] == "same", f"{how}: {lines[0]}")
            check(items(paths) == before, f"{how} removed items")


def without_cas():
    """Without cas no item shows that it is the other: once, the only copies went. Servers that are different ones are emptied as ever."""
    with Servers(2, "-C") as servers:
        old, other = servers.paths
        again = old + "-again"
        os.symlink(old, again)
        store(old, [b"key%d" % number for number in range(ITEMS)])
        for new, goes in ((again, False), (other, True)):
            journal = os.path.join(servers.directory, "journal-" + os.path.basename(new))
            options = ["--without-cas", "--journal", journal]
            status, lines, error = answers("unix:" + old, "ring", "move", "--to", "unix:" + new, *options)
            check(status == 0 and lines[-1]["left"] == 0, f"move: {status} {lines[-1:]} {error}")
            for how in ("--dry-run", "--yes"):
                before = items([old])
                prune = ["where", "--prune", "--live", "--moved-from", "unix:" + old, *options, how]
                status, lines, error = answers("unix:" + new, *prune)
                removed = lines[-1].get("removed", lines[-1].get("would_remove"))
                check((status, removed) == ((0, ITEMS) if goes else (2, 0)), f"{new} {how}: {status} {lines[-1:]} {error}")
                check(goes or lines[0]["left"] == "same", f"{new} {how}: {lines[0]}")
                check((items([old]) == before) == (not goes or how == "--dry-run"), f"{new} {how}: {len(before)} were there")


def equal_tokens():
    """Two new servers issue the same cas uniques. Once, a dry run said of their copies that they might be the same, and the run removed them."""
    with Servers(2) as servers:
        old, new = ("unix:" + path for path in servers.paths)
        answers(old, "item", "set", "key", "value")
        answers(old, "ring", "move", "--to", new)
        tokens = [answers(server, "where", "--probe", "key")[1][0]["copies"][0]["cas"] for server in (old, new)]
        check(tokens[0] == tokens[1], f"other tokens: {tokens}")
        for how, word in (("--dry-run", "would_remove"), ("--yes", "removed")):
            status, lines, error = answers(new, "where", "--prune", "--live", "--moved-from", old, how)
            check(status == 0 and lines[-1][word] == 1, f"{how}: {status} {lines} {error}")


def listed_twice():
    """One name too many in a pool: a key's own server and the one that holds a stray copy are the same."""
    with Servers(4) as servers:
        paths = servers.paths
        os.symlink(paths[0], paths[0] + "-again")
        pool = [list_of([*paths, paths[0] + "-again"]), "--as", "gomemcache"]
        places = answers(*pool, "where", "-", input="\n".join(f"key{number}" for number in range(ITEMS)))[1]
        for path in [*paths, paths[0] + "-again"]:
            store(path, [line["key"].encode() for line in places if line["server"] == "unix:" + path])
        before = items(paths)
        status, lines, error = answers(*pool, "where", "--prune", "--live", "--yes", "--even-replicas")
        check(items(paths) == before, f"removed the only copies: {status} {lines[-1:]} {error}")
        check(status == 2 and lines[-1]["removed"] == 0, f"one server under two names: {status} {lines[-1:]} {error}")


def behind_a_proxy():
    """The new list is a proxy, behind which the old server is too: what the proxy sends back to it stays."""
    with Servers(["old", "new"]) as servers, ExitStack() as stack:
        paths, proxy = servers.paths, os.path.join(servers.directory, "proxy")
        stack.callback(end, start_twemproxy(proxy, dict(zip(servers.names, paths)), "hash: fnv1a_64", "timeout: 5000"))
        keys = [b"key%d" % number for number in range(ITEMS)]
        store(paths[0], keys)
        pools = "unix:" + paths[0], "unix:" + proxy
        status, lines, error = answers(pools[0], "ring", "move", "--to", pools[1])
        moved = lines[-1]["copied"]
        check(status == 0 and 0 < moved < ITEMS, f"to a proxy: {status} {lines[-1]} {error}")
        status, lines, error = answers(pools[1], "where", "--prune", "--live", "--moved-from", pools[0], "--yes")
        check(lines[-1]["removed"] == moved, f"{moved} were copied: {status} {lines[-1]} {error}")
        with connected(proxy) as file:
            for key in keys:
                file.write(b"get " + key + b"\r\n")
                file.flush()
                head = file.readline()
                check(head == b"VALUE " + key + b" 3 5\r\n", f"{key} is gone")
                if head != b"END\r\n":
                    check(file.read(12) == b"value\r\nEND\r\n", f"{key} has another value")


COPIES = [["hash", "set", "h", "f", "v"], ["hash", "get", "h", "f"], ["table", "add", "t", "m"], ["table", "fetch", "t"],
          ["counter", "incr", "c"], ["counter", "get", "c"], ["lock", "acquire", "l"]]


def check_copies(names, *options):
    """Each verb says that two of the names are one server."""
    for words in COPIES:
        status, _, error = answers(",".join(names), *options, *words)
        told = [name.removeprefix("unix:") for name in names if name.removeprefix("unix:") in error]
        check(status == 78 and len(told) == 2 and "are one server" in error, f"{names} {words}: {status} {error}")


def in_two_copies():
    """Copies under two names of one server were one copy: three increments made 6, and a loss of it was the loss of all."""
    with Servers(2) as servers:
        path, other = servers.paths
        os.symlink(path, path + "-again")
        twice = ["unix:" + path, "unix:" + path + "-again"]
        check_copies(twice, "--copies", "2")
        with open(os.path.join(servers.directory, "mcds.conf"), "w", encoding="utf-8") as file:
            file.write("copies = 2\n")
        check_copies(twice, "--config", file.name)
        status, lines, error = answers(",".join(twice), "--copies", "1", "hash", "set", "h", "f", "v")
        check(status == 0, f"one copy: {status} {error}")
        done = answers(servers.list, "--copies", "2", "hash", "set", "g", "f", "v")
        check(done[0] == 0, f"two servers: {done}")


def by_two_addresses():
    """A name and its address lead to one port; two addresses of this machine to one process. Other processes there are others."""
    with ExitStack() as stack:
        port = free_port()
        # All addresses of this machine are in 127.0.0.0/8.
        stack.callback(end, start_at("127.0.0.1,127.0.0.2", port))
        stack.callback(end, start_at("127.0.0.3", port))
        for names in (["localhost", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]):
            check_copies([f"{name}:{port}" for name in names], "--copies", "2")
        status, _, error = answers(f"127.0.0.1:{port},127.0.0.3:{port}", "--copies", "2", "counter", "incr", "c")
        check(status == 0, f"two processes: {status} {error}")


def twins_in_containers():
    """In containers all servers are process 1; those that started in one second, as of one rollout, are no less several."""
    with ExitStack() as stack:
        port = free_port()
        addresses = [f"127.0.0.{number}" for number in (1, 2, 3)]
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        command = ["unshare", *user, "--pid", "--fork", "--kill-child"]
        for address in addresses:
            stack.callback(end, start_at(address, port, within=command))
        names = ",".join(f"{address}:{port}" for address in addresses)
        lives = {(line["pid"], round(time.time() - line["uptime_s"])) for line in statistics(port, addresses)}
        check({pid for pid, _ in lives} == {"1"}, f"not as in containers: {lives}")
        for words in COPIES:
            status, _, error = answers(names, "--copies", "3", *words)
            check("are one server" not in error and status != 78, f"three servers {words}: {status} {error}")
        status, lines, error = answers(names, "doctor", "--for", "1s", "--only", "same_server")
        check(status == 0 and lines[-1]["problems"] == 0, f"doctor: {status} {lines} {error}")


def statistics(port, addresses):
    for address in addresses:
        with socket.create_connection((address, port)) as connection, connection.makefile("rwb") as file:
            file.write(b"stats\r\n")
            file.flush()
            figures = dict(line.decode().split()[1:3] for line in iter(file.readline, b"END\r\n"))
            yield {"pid": figures["pid"], "uptime_s": int(figures["uptime"])}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    in_two_copies()
    by_two_addresses()
    twins_in_containers()
    spelled_otherwise()
    without_cas()
    equal_tokens()
    listed_twice()
    behind_a_proxy()
    finish()
