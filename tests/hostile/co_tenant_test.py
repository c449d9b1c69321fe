#!/usr/bin/env python3
"""What another user of the server can do with a plain memcached client, as the pages of locks, caches and event logs say:
take, extend and free locks, choose a cached command's output and exit code, add and remove events. What is no forgery but an
accident, bytes of another program under our keys, is refused.

Usage: co_tenant_test.py BUILD_DIR
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
from hostile import Server  # noqa: E402


def remove(server, key):
    server.connection.sendall(f"delete {key}\r\n".encode())
    assert server.file.readline() == b"DELETED\r\n", key


def locks(server):
    ours = json.loads(server.run("lock", "acquire", "l", "--ttl", "60s").out)
    remove(server, "lock:l")
    done = server.run("lock", "renew", "l", "--token", ours["token"])
    check(done.status == 1, f"a lock that another user freed is lost, and said to be: {done}")
    theirs = json.loads(server.run("lock", "acquire", "l", "--ttl", "60s").out)
    stolen = server.get("lock:l").replace(theirs["token"].encode(), b"0123456789abcdef")
    server.command("set lock:l", stolen)
    done = server.run("lock", "renew", "l", "--token", "0123456789abcdef", "--ttl", "90s")
    check(done.status == 0, f"a lock that another user took is that user's: {done}")
    done = server.run("lock", "renew", "l", "--token", theirs["token"])
    check(done.status == 1, f"its holder has lost it: {done}")
    server.command("set lock:l", b"of an application")
    done = server.run("lock", "acquire", "l", "--ttl", "60s")
    check(done.status in (65, 75), f"another program's bytes are no lock that can be taken: {done}")


def caches(server, elsewhere):
    elsewhere.run("cache", "run", "k", "--ttl", "60s", "--cache-codes", "3", "--", "sh", "-c", "echo forged; exit 3")
    server.run("cache", "run", "k", "--ttl", "60s", "--", "echo", "real")
    server.command("set cache:k", elsewhere.get("cache:k"))
    done = server.run("cache", "run", "k", "--ttl", "60s", "--cache-codes", "3", "--", "echo", "real")
    check(done.status == 3 and done.out == "forged\n", f"an entry that another user wrote is replayed: {done}")
    server.command("set cache:k", b"of an application")
    done = server.run("cache", "run", "k", "--ttl", "60s", "--", "echo", "real")
    check(done.status in (0, 65) and "application" not in done.out, f"another program's bytes are not replayed: {done}")


def events(server, elsewhere):
    server.run("eventlog", "put", "e", "ours")
    elsewhere.run("eventlog", "put", "e", "forged")
    for log in (server, elsewhere):
        check(log.run("eventlog", "fetch", "e").status == 0, "a log is read")
    part = next(key for key in elsewhere.keys() if key.startswith("eventlog:e:60x60:") and "dir" not in key)
    forged = elsewhere.get(part)
    server.command(f"set {part}", forged)
    done = server.run("eventlog", "fetch", "e")
    check("forged" in done.out and "ours" not in done.out, f"events that another user wrote and removed: {done}")
    server.command(f"set {part}", b"of an application")
    done = server.run("eventlog", "fetch", "e")
    check(done.status in (2, 65) and "application" not in done.out, f"another program's bytes are no events: {done}")


def main():
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two, Server(one) as server, Server(two) as elsewhere:
        locks(server)
        caches(server, elsewhere)
        events(server, elsewhere)
    finish()


if __name__ == "__main__":
    main()
