#!/usr/bin/env python3
"""Keys that only clients of the binary protocol can store: with spaces, line feeds, commands. Nothing of them is executed,
and lists of them go from command to command.

Usage: foreign_keys_test.py BUILD_DIR
"""
import base64
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish  # noqa: E402
import program  # noqa: E402
from real_servers import Servers, ask  # noqa: E402

FOREIGN = [b"a b", b"junk:\nprecious", b"x\r\nflush_all\r\nget y", b"\xff\xfe key", b"tab\there", b" " * 186]
PLAIN = b"precious"


def store(path, key):
    assert ask(path, b"ms " + base64.b64encode(key) + b" 1 b\r\nv").startswith(b"HD")


def there(path):
    return set(keys_of(run(path, "item", "list").stdout))


def run(paths, *words, text=b""):
    servers = ",".join(f"unix:{path}" for path in ([paths] if isinstance(paths, str) else paths))
    return program.run(servers, *words, input=text, text=False)


def keys_of(lines):
    objects = [json.loads(line) for line in lines.splitlines()]
    return [base64.b64decode(o["key_b64"]) if "key_b64" in o else o["key"].encode() for o in objects if "key" in o or "key_b64" in o]


def one_server(path):
    store(path, PLAIN)
    for key in FOREIGN:
        store(path, key)
    listed = run(path, "item", "list").stdout
    check(sorted(keys_of(listed)) == sorted([*FOREIGN, PLAIN]), f"item list: {listed}")
    for words in (["item", "get", "-"], ["item", "show", "-"], ["where", "--probe", "-"], ["where", "-"], ["item", "touch", "-", "--ttl", "1h"]):
        done = run(path, *words, text=listed)
        check(done.returncode == 0 and sorted(keys_of(done.stdout)) == sorted([*FOREIGN, PLAIN]), f"mcds {words}: {done}")
        check(b"false" not in done.stdout.replace(b'"expires":false', b""), f"mcds {words} misses some: {done}")
    names = run(path, "item", "list", "-0", "-o", "value").stdout
    check(sorted(names.split(b"\0")[:-1]) == sorted([*FOREIGN, PLAIN]), f"item list -0: {names}")
    done = run(path, "item", "show", "-0", "-", "-o", "value", text=names)
    check(done.returncode == 0 and done.stdout == b"1\0" * (len(FOREIGN) + 1), f"item show -0: {done}")
    done = run(path, "item", "list", "-o", "value")
    check(done.returncode == 65 and b"control characters" in done.stderr, f"keys with controls in a list of names: {done}")
    check(sorted(done.stdout.splitlines()) == sorted([key for key in [*FOREIGN, PLAIN] if not set(key) & set(b"\n\r\t")]), f"item list -o value: {done}")
    done = run(path, "item", "get", "-", "--protocol", "classic", text=listed)
    check(done.returncode == 76 and keys_of(done.stdout) == [PLAIN] and b"binary protocol" in done.stderr, f"classic: {done}")
    done = run(path, "item", "get", "a b")
    check(done.returncode == 64, f"a typed key with a space: {done}")
    lines = b"".join(line for line in listed.splitlines(True) if b'"precious"' not in line)
    done = run(path, "item", "remove", "-", "-y", text=lines)
    check(done.returncode == 0 and there(path) == {PLAIN}, f"item remove: {done}, left {there(path)}")
    run(path, "item", "remove", PLAIN.decode())


def two_servers(paths):
    """All on the first: those that belong on the second are misplaced, and prune takes the strays."""
    for path in paths:
        for key in FOREIGN:
            store(path, key)
    done = run(paths, "where", "--probe", "--live", "--list", "-0", "-o", "value")
    check(sorted(done.stdout.split(b"\0")[:-1]) == sorted(FOREIGN), f"where --probe --live: {done}")
    done = run(paths, "where", "--prune", "--live", "--yes", "--even-replicas")
    left = [there(path) & set(FOREIGN) for path in paths]
    check(done.returncode in (0, 2) and not left[0] & left[1] and left[0] | left[1] == set(FOREIGN), f"where --prune: {done}, left {left}")


def main():
    with Servers(2) as servers:
        one_server(servers.paths[0])
        two_servers(servers.paths)
    finish()


if __name__ == "__main__":
    main()
