#!/usr/bin/env python3
"""The disaster of a proxy that ejects servers, with real nutcracker: the old value is served while the new one sits elsewhere.

Usage: where_test.py BUILD_DIR

A server stops, the proxy takes it out of its ring, a writer's new value goes to another server; the first comes back with the old
value in its memory and the proxy reads that one again. `where --down` says beforehand where the new value will go, `where --probe`
shows both, `where --prune` keeps both, and with `--divergent drop` ends it.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from sockets import own_address

PROFILE = "twemproxy-ketama-md5"
DEADLINE_S = 60
mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")


def ended(process):
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()


def wait_for(what, condition):
    deadline = time.monotonic() + DEADLINE_S
    while not (result := condition()):
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {DEADLINE_S} s")
        time.sleep(0.02)
    return result


def start(stack, command, path):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(ended, process)

    def accepts():
        if process.poll() is not None:
            sys.exit(f"{command[0]} does not start")
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(path) == 0

    wait_for(command[0], accepts)
    return process


def start_servers(stack, directory):
    user = ["-u", "root"] if os.geteuid() == 0 else []
    paths = {name: os.path.join(directory, name) for name in ("m1", "m2", "m3")}
    return {name: (path, start(stack, ["memcached", "-s", path, "-m", "16", "-t", "1", *user], path))
            for name, path in paths.items()}


def start_proxy(stack, directory, servers):
    path = os.path.join(directory, "proxy")
    lines = ["pool:", f"  listen: {path}", "  hash: md5", "  distribution: ketama", "  timeout: 300", "  auto_eject_hosts: true",
             "  server_retry_timeout: 1000", "  server_failure_limit: 1", "  servers:"]
    lines += [f"   - {server}:1 {name}" for name, (server, _) in servers.items()]
    configuration = os.path.join(directory, "nutcracker.yml")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    # Its statistics need a TCP port; an address of our own keeps other runs' away.
    start(stack, ["nutcracker", "-c", configuration, "-a", own_address()], path)
    return path


def ask(path, request):
    """One request on a connection of its own; the answer's first two lines at most."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(DEADLINE_S)
        connection.connect(path)
        connection.sendall(request.encode())
        answer = b""
        while not answer.endswith((b"END\r\n", b"STORED\r\n")) and b"ERROR" not in answer:
            chunk = connection.recv(4096)
            if not chunk:
                break
            answer += chunk
        return answer.decode()


def store(path, key, value):
    return ask(path, f"set {key} 0 0 {len(value)}\r\n{value}\r\n") == "STORED\r\n"


def value_of(path, key):
    lines = ask(path, f"get {key}\r\n").split("\r\n")
    return lines[1] if lines[0].startswith("VALUE") else None


def where(servers, *arguments):
    pool = ",".join(f"{name}=unix:{path}" for name, (path, _) in servers.items())
    done = subprocess.run([mcds, "-s", pool, "--as", PROFILE, "where", *arguments], capture_output=True, text=True,
                          timeout=DEADLINE_S, check=False, stdin=subprocess.DEVNULL)
    check(done.stderr == "", f"where {arguments}: said {done.stderr!r}")
    return done.returncode, json.loads(done.stdout)


def name_of(servers, address):
    return next(name for name, (path, _) in servers.items() if address == f"unix:{path}")


def sizes(answer, servers):
    return {name_of(servers, copy["server"]): copy.get("size_bytes") for copy in answer["copies"]}


def disaster(servers, proxy, key):
    check(store(proxy, key, "old"), f"{key}: the first value is not stored")
    status, answer = where(servers, "--probe", key)
    check((status, answer["verdict"]) == (0, "ok"), f"{key}: {status} {answer} before")
    home = name_of(servers, answer["server"])
    _, foretold = where(servers, "--down", home, key)
    other = name_of(servers, foretold["then"]["server"])

    servers[home][1].send_signal(signal.SIGSTOP)
    # Only reads until it is ejected: what is written to a stopped server arrives when it wakes.
    wait_for("the proxy ejects the server", lambda: ask(proxy, f"get {key}\r\n") == "END\r\n")
    check(store(proxy, key, "newer"), f"{key}: the second value is not stored")
    servers[home][1].send_signal(signal.SIGCONT)
    wait_for("the proxy serves the old value again", lambda: value_of(proxy, key) == "old")

    status, answer = where(servers, "--probe", key)
    check((status, answer["verdict"]) == (2, "divergent"), f"{key}: {status} {answer} afterwards")
    found = sizes(answer, servers)
    check(found[home] == 3, f"{key}: the old value is not on {home}: {found}")
    check(found[other] == 5, f"{key}: the new value is not on {other}, as foretold: {found}")

    status, answer = where(servers, "--prune", "--yes", key)
    check((status, answer["verdict"]) == (2, "divergent"), f"{key}: pruning ended with {status} {answer}")
    check(value_of(servers[other][0], key) == "newer", f"{key}: the newer value is gone")
    status, _ = where(servers, "--prune", "--yes", "--divergent", "drop", key)
    check(status == 0, f"{key}: the drop ended with {status}")
    check(value_of(proxy, key) is None, f"{key}: the proxy still serves a value")


with ExitStack() as stack:
    directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="mcds-where-"))
    servers = start_servers(stack, directory)
    proxy = start_proxy(stack, directory, servers)
    for key in ("session:8812", "price:44"):
        disaster(servers, proxy, key)
finish()
