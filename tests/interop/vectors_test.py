#!/usr/bin/env python3
"""Each vector in tests/vectors/layout: its items go to a server, and mcds and the Python reference give its answers.

Usage: vectors_test.py BUILD_DIR
"""
import base64
import glob
import json
import os
import string
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from reference import lines
from servers import Memcacheds
from structures import Mcds, Reference

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors", "layout")
VERSION = 1
ANY = "*"
DIGITS = string.digits + string.ascii_lowercase


def value_of(written):
    """Text, {"b64": …}, {"repeat": text, "times": n}, or a list of these."""
    if isinstance(written, list):
        return b"".join(map(value_of, written))
    if isinstance(written, dict):
        return base64.b64decode(written["b64"]) if "b64" in written else written["repeat"].encode() * written["times"]
    return written.encode()


def same(found, expected):
    """"*" is anything but nothing. 1 and true differ."""
    if expected == ANY:
        return found is not None
    if isinstance(expected, (list, dict)):
        keys = range(len(expected)) if isinstance(expected, list) else expected
        return (type(found) is type(expected) and len(found) == len(expected)
                and all(key in (found if isinstance(found, dict) else range(len(found))) and same(found[key], expected[key])
                        for key in keys))
    return isinstance(found, bool) == isinstance(expected, bool) and found == expected


def run(case, side, namespace, client, what):
    for item in case["items"]:
        client.set(namespace + item["key"], value_of(item["value"]), item.get("exptime", 0))
    for step in case["steps"]:
        answer = getattr(side, step["do"])(*step["with"])
        check(same(answer, step["answer"]),
              f"{what}: {step['do']} {step['with']} answers {answer!r}, not {step['answer']!r}")
    for item in case.get("left", []):
        value = client.get(namespace + item["key"])
        check(value is not None and value.rstrip(b" ") == value_of(item["value"]),
              f"{what}: leaves {value!r} under {item['key']}, not {item['value']!r}")


def main():
    mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
    total = 0
    with tempfile.TemporaryDirectory(prefix="mcds-vectors-") as directory, Memcacheds(directory) as memcacheds:
        server = memcacheds.on_kernel_port()
        client = lines.client(server.host, server.port)
        for path in sorted(glob.glob(os.path.join(VECTORS, "*.json"))):
            with open(path, encoding="utf-8") as file:
                vectors = json.load(file)
            structure = vectors["structure"]
            check(vectors["version"] == VERSION and path.endswith(f"/{structure}.json"), f"{path} is of another version")
            for case in vectors["cases"]:
                for letter, kind in (("m", Mcds), ("r", Reference)):
                    namespace = f"{letter}{DIGITS[total // 36]}{DIGITS[total % 36]}"  # three bytes
                    side = Mcds(mcds, [server], namespace) if kind is Mcds else Reference.on(server, namespace)
                    try:
                        run(case, side, namespace, client, f"{structure}, {case['name']}: {kind.__name__}")
                    except (KeyError, IndexError, TypeError, ValueError, RuntimeError) as error:
                        check(False, f"{structure}, {case['name']}: {kind.__name__}: {error!r}")
                total += 1
            print(f"{structure}: {len(vectors['cases'])} vectors")
    check(total > 100, f"only {total} vectors")
    finish()


if __name__ == "__main__":
    main()
