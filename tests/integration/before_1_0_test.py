#!/usr/bin/env python3
"""What versions before 1.0 stored, in tests/vectors: what this version does not write is refused, said to be of 0.x, and left as it
is; a refused verb changes nothing.

Usage: before_1_0_test.py BUILD_DIR
"""
import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
from program import run  # noqa: E402
from real_servers import connected, dumped, Servers  # noqa: E402

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../vectors")
SERVERS = "abc"
VERBS = {
    "array": (["fetch"], ["add", "x"], ["remove", "x"], ["replace", "x"], ["drop"]),
    "counter": (["get"], ["incr"], ["set", "4"], ["take"], ["remove"]),
    "eventlog": (["fetch"], ["info"], ["put", "x"], ["drop"]),
    "hash": (["get", "color"], ["fetch"], ["check"], ["set", "color", "x"], ["remove", "color"], ["drop"]),
    "table": (["has", "a b"], ["fetch"], ["check"], ["add", "x"], ["remove", "a b"], ["drop"])}
IN_COPIES = ("counter", "hash", "table")
OF_0 = {"before_0.2.txt": {("eventlog", "kept1"), ("eventlog", "kept2"), ("eventlog", "kept3"), ("counter", "kept2x"), ("counter", "kept3x")},
        "before_0.3.txt": {("counter", "kept2x"), ("counter", "kept3x")}}


def vectors(name):
    with open(os.path.join(VECTORS, name), encoding="ascii") as file:
        for line in file:
            if not line.startswith("#"):
                server, key, flags, value = line.rstrip("\n").split(" ")
                yield server, key, flags, base64.b64decode(value)


def read(file, key):
    file.write(f"get {key}\r\n".encode())
    file.flush()
    header = file.readline().split()
    if header == [b"END"]:
        return None
    value = file.read(int(header[3]) + 2)[:-2]
    file.readline()
    return header[2].decode(), value


def changed(paths, items):
    """The keys that are not as they were; asked one by one, because a list of a server may miss some."""
    keys = []
    for path, server in zip(paths, SERVERS):
        with connected(path) as file:
            keys += [key for of, key, flags, value in items if of == server and read(file, key) != (flags, value)]
    return keys


def restore(paths, items):
    """Removes everything, one key after the other: flush_all would take what is stored in the same second."""
    for path, server in zip(paths, SERVERS):
        with connected(path) as file:
            for key in list(dumped(file)):
                file.write(b"delete %b\r\n" % key)
                file.flush()
                file.readline()
            for of, key, flags, value in items:
                if of == server:
                    file.write(f"set {key} {flags} 0 {len(value)}\r\n".encode() + value + b"\r\n")
                    file.flush()
                    assert file.readline() == b"STORED\r\n"


def every_verb(paths, name, structure, kept):
    items = list(vectors(name))
    servers = ",".join(f"{server}=unix:{path}" for server, path in zip(SERVERS, paths))
    of_0, told = (structure, kept) in OF_0[name], 0
    for words in VERBS[structure]:
        for copies in (1, 2, 3) if structure in IN_COPIES else (1,):
            restore(paths, items)
            done = run(servers, *(["--copies", str(copies)] if copies > 1 else []), structure, words[0], kept, *words[1:])
            what = f"{name}: {structure} {words[0]} {kept}, {copies} copies: {done}"
            check(done.returncode in (0, 1, 2, 64, 65), what)
            check(done.returncode == 0 or not changed(paths, items), f"refused, and yet changed: {what}")
            check(copies > 1 or not of_0 or done.returncode != 0 or words[0] == "fetch", f"bytes of 0.x are used: {what}")
            told += "written by mcds 0.x" in done.stderr
    check(told > 0 or not of_0, f"{name}: {structure} {kept} is said to be of 0.x")


def main():
    with Servers(SERVERS) as servers:
        for name in OF_0:
            for structure in VERBS:
                for kept in ("kept1", "kept2", "kept3", *(("kept1x", "kept2x", "kept3x") if structure == "counter" else ())):
                    every_verb(servers.paths, name, structure, kept)
    finish()


if __name__ == "__main__":
    main()
