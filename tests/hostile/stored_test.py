#!/usr/bin/env python3
"""What anybody may store under our keys: no crash, no flood, nothing forged. Usage: stored_test.py BUILD_DIR"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from hostile import Server, judged, sealed

INCARNATION = "5f3a9c0d1e2b4a67"
ID = "01a1fc4a-f7b9-7c3e-b1f0-2a9d5e7c4b18"



def event_log(server):
    server.run("eventlog", "put", "log", "ours")
    stored = server.keys()
    directory = next(key for key in stored if ":dir:" in key)
    part = next(key for key in stored if key.startswith("eventlog:log:60x60:") and key.count(":") == 3)
    chunk = part.rsplit(":", 1)[1]
    for number in ("9007199254740992", "4611686018427387904", "100000", "1000"):
        server.command(f"append {directory}", sealed(f"N {chunk}.{number} {INCARNATION} 1795234133") + "\n")
    server.command(f"append {directory}", sealed(f"N {chunk} {INCARNATION} 9007199254740992") + "\n")
    for verb in (("fetch", "log"), ("info", "log"), ("tail", "log")):
        done = server.run("eventlog", *verb)
        judged(done, f"a directory that names part 2^53: eventlog {verb[0]}")
        check(done.status == 65, f"a directory that names part 2^53: eventlog {verb[0]} ends with {done}")
    for data in ("NaN", '1} {"id":"forged"', "{}\0,\"held\":false", "[" * 100000 + "]" * 100000, "{\"a\":\r1}", 'b"%%"'):
        server.command(f"append {part}", sealed(f"{ID} {data}") + "\n")
        for arguments in (("fetch", "log"), ("tail", "log"), ("fetch", "log", "-o", "text")):
            done = server.run("eventlog", *arguments)
            judged(done, f"an event that is no JSON: {data[:20]!r}, eventlog {arguments}")
            check(done.status == 65 and "forged" not in done.out and "held" not in done.out and "NaN" not in done.out,
                  f"an event that is no JSON is shown as bytes, not as {done}")
        server.run("eventlog", "put", "log", "ours")


def event_log_floods(server):
    server.run("eventlog", "put", "log", "ours")
    part = next(key for key in server.keys() if key.startswith("eventlog:log:60x60:") and key.count(":") == 3)
    directory = next(key for key in server.keys() if ":dir:" in key)
    header = server.get(part)
    looks = b"01a201b5-af69-7436-a55d-7c1277d40eb6 "
    for what, value in (("a million empty lines", b"\n" * 1000000),
                        ("a line of thousands of ids", looks * 27000 + b"*00000000\n"),
                        ("events that are not JSON", (sealed(f"{ID} NaN") + "\n").encode() * 15000),
                        ("a part that ends in nothing", b"x" * 1000000)):
        server.command(f"set {part}", header + value)
        for verb in ("fetch", "tail", "info"):
            done = server.run("eventlog", verb, "log")
            judged(done, f"{what}: eventlog {verb}")
            check(done.status == 65 and done.err.count("\n") <= 4, f"{what}: eventlog {verb} says it in a few lines: {done}")
    chunk = int(part.rsplit(":", 1)[1])
    for group in range(chunk // 32 - 3, chunk // 32 + 1):
        lines = "".join(sealed(f"N {one}.32767 {INCARNATION} 1795234133") + "\n" for one in range(32 * group, 32 * group + 32))
        server.command(f"set {directory.rsplit(':', 1)[0]}:{group}", lines)
    for verb in ("fetch", "info"):
        judged(server.run("eventlog", verb, "log"), f"each chunk has a part 32767: eventlog {verb}")


def array(server):
    server.command("set array:twice:s:0123456789abcdef", sealed('+ b7c1e0f2a94d4f6e.0 "x"') + "\n" + "#" * 500000 + "\n")
    root = sealed("J1 9f0c6a5be1d27348") + "\n" + (sealed("S 0123456789abcdef 1") + "\n") * 1000
    server.command("set array:twice", root)
    done = server.run("array", "fetch", "twice")
    judged(done, "a root that names one segment 1000 times")
    check('"values":["x"]' in done.out, f"a segment named 1000 times is read once: {done}")
    server.command("set array:foreign", sealed("J1 9f0c6a5be1d27348") + "\n" +
                   sealed('+ b7c1e0f2a94d4f6e.0 1],"server":"forged","x":[2') + "\n")
    done = server.run("array", "fetch", "foreign")
    judged(done, "an element that is no JSON")
    check(done.status == 65 and "forged" not in done.out, f"an element that is no JSON is shown as bytes: {done}")
    server.command("set array:deep:json", "[" * 100000 + "]" * 100000)
    done = server.run("array", "fetch", "deep")
    judged(done, "a JSON array 100000 deep")
    check(done.status == 65, f"a JSON array 100000 deep is refused: {done}")


def lock(server):
    for holder in ('{}\0 "\\q"', '{}\0,"held":false', "[" * 100000, '{"host":"\x1b]52;c;aGk=\x07"}', "\xff"):
        server.command("set lock:l", f"0123456789abcdef {holder}".encode("latin-1"))
        for arguments in (("lock", "run", "l", "-w", "0", "--", "true"), ("lock", "show", "l"), ("lock", "acquire", "l", "-w", "0")):
            done = server.run(*arguments)
            judged(done, f"a lock's holder {holder[:20]!r}: {arguments[1]}")
            check('"held":false' not in done.out, f"a lock's holder {holder[:20]!r} forges fields: {done}")
            check("\x1b" not in done.out + done.err, f"a lock's holder reaches the terminal: {done}")


def json_given(server):
    for text in (b'1\0 "\\q"\n', b"1\0", b"[" * 100000, b"[" * 100000 + b"]" * 100000):
        for arguments in (("eventlog", "put", "x", "--json", "-"), ("array", "add", "x", "--json", "-"), ("key", "-")):
            done = server.run(*arguments, input=text)
            judged(done, f"{arguments} < {text[:20]!r}")
            check(done.status == 65, f"{arguments} < {text[:20]!r} is no JSON: {done}")


def large_values(directory):
    """As large as a server with -I 128m holds: none of ours are, and what cannot be refused is written piece by piece."""
    with Server(directory, "-m", "1024", "-I", "128m") as server:
        for byte in (b"a", b"\x01", b"\x7f", b"\xff") if FULL else (b"a", b"\xff"):
            for key, commands in {
                    "hash:h:v:f": (("hash", "get", "h", "f"), ("hash", "get", "h", "f", "-o", "value"), ("hash", "get", "h", "f", "-o", "text")),
                    "lock:l": (("lock", "show", "l"), ("lock", "run", "l", "-w", "0", "--", "true")),
                    "counter:c": (("counter", "get", "c"), ("counter", "incr", "c")),
                    "array:a": (("array", "fetch", "a"),), "cache:k": (("cache", "show", "k"),),
                    "item": (("item", "get", "item"),)}.items():
                server.command(f"set {key}", byte * (1 << 20), times=60)
                for command in commands:
                    done = server.run(*command, "--timeout", "10s")
                    judged(done, f"60 MiB of {byte!r}: {' '.join(command)}")
                    if command == ("hash", "get", "h", "f", "-o", "value"):
                        check(done.out_bytes == 60 << 20, f"60 MiB of {byte!r}: {done.out_bytes} bytes printed")
                server.flush()


def main():
    for scenario in (event_log, event_log_floods, array, lock, json_given):
        with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
            scenario(server)
    with tempfile.TemporaryDirectory() as directory:
        large_values(directory)
    finish()


if __name__ == "__main__":
    main()
