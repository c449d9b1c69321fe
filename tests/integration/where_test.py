#!/usr/bin/env python3
"""The disaster of a proxy that ejects servers, with real nutcracker: the old value is served while the new one sits elsewhere.

Usage: where_test.py BUILD_DIR

A server stops, the proxy takes it out of its ring, a writer's new value goes to another server; the first comes back with the old
value in its memory and the proxy reads that one again. `where --down` says beforehand where the new value will go, `where --probe`
shows both, `where --prune` keeps both, and with `--divergent drop` ends it.
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import answers, wait_for
from real_servers import Servers, ask, connected, end, start_twemproxy

PROFILE = "twemproxy-ketama-md5:eject=yes"


def value_of(path, key):
    with connected(path) as file:
        file.write(f"get {key}\r\n".encode())
        file.flush()
        return file.readline().startswith(b"VALUE") and file.readline().decode().rstrip()


def where(servers, *arguments):
    pool = ",".join(f"{name}=unix:{path}" for name, path in zip(servers.names, servers.paths))
    status, (answer,), error = answers(pool, "--as", PROFILE, "where", *arguments)
    check(error == "", f"where {arguments}: said {error!r}")
    return status, answer


def name_of(servers, address):
    return servers.names[servers.paths.index(address.removeprefix("unix:"))]


def sizes(answer, servers):
    return {name_of(servers, copy["server"]): copy.get("size_bytes") for copy in answer["copies"]}


def disaster(servers, proxy, key):
    check(ask(proxy, f"set {key} 0 0 3\r\nold") == b"STORED", f"{key}: the first value is not stored")
    status, answer = where(servers, "--probe", key)
    check((status, answer["verdict"]) == (0, "ok"), f"{key}: {status} {answer} before")
    home = name_of(servers, answer["server"])
    _, foretold = where(servers, "--down", home, key)
    other = name_of(servers, foretold["then"]["server"])
    server = servers.processes[servers.names.index(home)]

    server.send_signal(signal.SIGSTOP)
    # Only reads until it is ejected: what is written to a stopped server arrives when it wakes.
    wait_for(lambda: ask(proxy, f"get {key}") == b"END", "the proxy ejects the server")
    check(ask(proxy, f"set {key} 0 0 5\r\nnewer") == b"STORED", f"{key}: the second value is not stored")
    server.send_signal(signal.SIGCONT)
    wait_for(lambda: value_of(proxy, key) == "old", "the proxy serves the old value again")

    status, answer = where(servers, "--probe", key)
    check((status, answer["verdict"]) == (2, "divergent"), f"{key}: {status} {answer} afterwards")
    found = sizes(answer, servers)
    check(found[home] == 3, f"{key}: the old value is not on {home}: {found}")
    check(found[other] == 5, f"{key}: the new value is not on {other}, as foretold: {found}")

    status, answer = where(servers, "--prune", "--yes", key)
    check((status, answer["verdict"]) == (2, "divergent"), f"{key}: pruning ended with {status} {answer}")
    check(value_of(servers.paths[servers.names.index(other)], key) == "newer", f"{key}: the newer value is gone")
    status, _ = where(servers, "--prune", "--yes", "--divergent", "drop", key)
    check(status == 0, f"{key}: the drop ended with {status}")
    check(not value_of(proxy, key), f"{key}: the proxy still serves a value")


with Servers(["m1", "m2", "m3"]) as three:
    path = os.path.join(three.directory, "proxy")
    nutcracker = start_twemproxy(path, dict(zip(three.names, three.paths)), "hash: md5", "timeout: 1000", "auto_eject_hosts: true",
                                 "server_retry_timeout: 1000", "server_failure_limit: 1")
    for name in ("session:8812", "price:44"):
        disaster(three, path, name)
    end(nutcracker)
finish()
