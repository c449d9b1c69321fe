#!/usr/bin/env python3
"""Servers that do not list their keys (-X) or cannot be watched (-W), beside one that does both: named, exit code 76, and the other's
answers are there.

Usage: refusals_test.py BUILD_DIR
"""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from program import answers
from real_servers import Servers, connected, end, start_twemproxy
from stub import Stub


NO_LIST = "the server's keys cannot be listed: listing keys is switched off; start the server without -X"
NO_WATCH = "the server's keys cannot be watched: watching is switched off; start the server without -W"
# What is run, which server refuses it, why, and a field of the lines that the other answers with.
REFUSED = [
    (["item", "list"], "-X", NO_LIST, "key"),
    (["item", "list", "--sort", "size"], "-X", NO_LIST, "key"),
    (["item", "list", "--by-prefix"], "-X", NO_LIST, "prefix"),
    (["item", "list", "--names", "counter"], "-X", NO_LIST, "counter"),
    (["ring", "move", "--as-to", "gomemcache", "--even-astray", "--dry-run"], "-X", NO_LIST, "server"),
    (["ring", "move", "--as-to", "gomemcache", "--even-astray"], "-X", NO_LIST, "server"),
    (["where", "--probe", "--live"], "-X", NO_LIST, "verdicts"),
    (["where", "--prune", "--live", "--even-replicas", "--dry-run"], "-X", NO_LIST, "verdicts"),
    (["item", "hot", "--for", "100ms"], "-W", NO_WATCH, "coverage"),
]
# What none of them refuses.
ANSWERED = [["item", "show", "app:1", "app:2"], ["servers", "--every", "100ms", "-n", "1"], ["servers", "--stats"], ["servers", "--stats", "items"]]


def run(pool, words):
    return answers(pool, "--as", "gomemcache" if words[:2] != ["ring", "move"] else "ketama", *words)


def without_cas():
    """Three copies of an exact counter: what was refused is named, where it was reported as servers out of memory."""
    with Servers(3, "-C") as servers:
        for copies in ("1", "3"):
            status, lines, errors = run(servers.list, ["counter", "incr", "n", "--exact", "--copies", copies])
            check(status == 76 and not lines and "does not support cas" in errors, f"{copies} copies on -C: {status} {lines} {errors}")


def a_full_server_keeps_the_older_value(servers):
    """memcached's `set` removes it when there is no memory for the new one."""
    full, roomy = "unix:" + servers.start("-M", "-m", "2"), "unix:" + servers.start()
    large, saved = os.path.join(servers.directory, "large"), os.path.join(servers.directory, "saved")
    with open(large, "w", encoding="ascii") as file:
        file.write("x" * 400_000)
    for pool, key, value in ((full, "k", "older"), (full, "small", "1"), (roomy, "k", "@" + large)):
        check(run(pool, ["item", "set", key, value])[0] == 0, f"{key} is stored")
    check(run(roomy, ["item", "save", saved])[0] == 0, "what is large is saved")
    while run(full, ["item", "set", f"filler{time.monotonic_ns()}", "@" + large])[0] == 0:
        pass
    for words in (["item", "set", "k", "@" + large], ["item", "load", saved, "--overwrite"]):
        status, _, errors = run(full, words)
        check(status == 76 and "out of memory" in errors, f"{words} on a full server: {status} {errors}")
        _, lines, _ = run(full, ["item", "get", "k"])
        check(lines[0].get("value") == "older", f"{words} on a full server: {lines}")
    for value in ("2", "3"):
        check(run(full, ["item", "set", "small", value])[0] == 0, "what fits is stored")
    check(run(full, ["item", "get", "small"])[1][0]["value"] == "3", "what fits is stored")


def main():
    with Servers(0) as servers:
        paths = {"plain": servers.start(), "-X": servers.start("-X"), "-W": servers.start("-W")}
        for path in paths.values():
            with connected(path) as file:
                for number in range(20):
                    file.write(b"set app:%d 0 0 1 noreply\r\n1\r\n" % number)
                file.write(b"set counter:c 0 0 1\r\n1\r\n")
                file.flush()
                file.readline()
        addresses = {name: "unix:" + path for name, path in paths.items()}
        for words, refuser, why, field in REFUSED:
            status, lines, errors = run(f"{addresses['plain']},{addresses[refuser]}", words)
            what = f"{words} on {refuser}: {status} {lines} {errors}"
            check(status == 76, what)
            told = [json.loads(line)["error"] for line in errors.splitlines() if "error" in json.loads(line)]
            check(told == [{"code": "refused", "message": why, "server": addresses[refuser]}], what)
            check(any(field in line for line in lines), what)
        for refuser in ("-X", "-W"):
            for words in ANSWERED:
                status, lines, errors = run(f"{addresses['plain']},{addresses[refuser]}", words)
                check(status == 0 and len(lines) >= 2 and errors == "", f"{words} on {refuser}: {status} {lines} {errors}")
        a_full_server_keeps_the_older_value(servers)
    without_cas()


def late_behind_a_proxy():
    """twemproxy gives up on a server that stands still, which carries the change out when it goes on: that is no refusal."""
    changes = [["visitors", "hit", "v"], ["hash", "set", "h", "f", "new"], ["item", "set", "i", "x"], ["item", "remove", "i"], ["lock", "acquire", "l"],
               ["eventlog", "put", "e", "two"], ["array", "add", "a", "w"], ["table", "remove", "t", "m"]]
    with Servers() as servers:
        server, = servers.processes
        proxy = os.path.join(servers.directory, "proxy")
        process = start_twemproxy(proxy, {"m": servers.paths[0]}, "hash: fnv1a_64", "timeout: 500")
        for words in (["visitors", "hit", "v"], ["hash", "set", "h", "f", "v"], ["eventlog", "put", "e", "one"], ["array", "add", "a", "v"],
                      ["table", "add", "t", "m"]):
            check(run("unix:" + proxy, words)[0] == 0, f"{words} through a proxy")
        for words in changes:
            server.send_signal(signal.SIGSTOP)
            status, _, errors = run("unix:" + proxy, words)
            server.send_signal(signal.SIGCONT)
            check(status == 80 and '"code":"unknown_outcome"' in errors, f"{words} while the server stands still: {status} {errors}")
        end(process)


def slow_to_say_that_it_is_busy():
    """It is busy with another dump, and is asked again: it was taken for one without keys, and a move left them."""
    dumps = []

    def serve(connection):
        with connection.makefile("rwb") as file:
            for line in file:
                word = line.strip()
                if word.startswith(b"lru_crawler metadump"):
                    dumps.append(word)
                    if len(dumps) == 1:
                        check(file.readline().strip() == b"version", "after a silence the end is asked for")
                        file.write(b"BUSY currently processing crawler request\r\nVERSION 1.6.18\r\n")
                    else:
                        file.write(b"key=k exp=-1 la=1 cas=2 fetch=no cls=1 size=69\nEND\r\n")
                elif word == b"mn":
                    file.write(b"MN\r\n")
                elif word == b"version":
                    file.write(b"VERSION 1.6.18\r\n")
                elif word == b"stats":
                    file.write(b"STAT time 1\r\nEND\r\n")
                else:
                    check(False, f"unexpected: {line}")
                file.flush()

    with Stub(serve) as server:
        status, lines, error = answers(f"127.0.0.1:{server.port}", "item", "list", "--timeout", "2s")
        check(status == 0 and error == "", f"ends with {status}: {error}")
        check([line["key"] for line in lines] == ["k"], f"its key is listed: {lines}")
        check(len(dumps) == 2, f"it is asked twice: {dumps}")


if __name__ == "__main__":
    main()
    slow_to_say_that_it_is_busy()
    late_behind_a_proxy()
    finish()
