#!/usr/bin/env python3
"""Files, words and answers that others make: bounded, refused in one line, never passed to the terminal.

Usage: given_test.py BUILD_DIR
"""
import contextlib
import os
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from stub import Stub
from hostile import SANITIZED, Server, execute, judged, plain_environment

CONTROLS = ["\x1b]52;c;aGk=\x07", "\x9b31m", "\x7f", "\r", "\x00"]


def refused(done, status, what):
    judged(done, what)
    check(done.status == status, f"{what}: wanted exit {status}, {done}")
    lines = done.err.splitlines()
    check(len(lines) == 1 and lines[0].startswith(('{"error"', "mcds: ")), f"{what}: no single line of error: {done}")


def files(directory):
    environment = plain_environment(HOME=directory)
    path = os.path.join(directory, "given")

    def write(data):
        with open(path, "wb") as file:
            file.write(data)

    def placed(kind, data, what, status=78):
        write(data)
        refused(execute(["where", "k", "--servers-from", f"{kind}:{path}", "--as", "libmemcached"], environment), status, what)

    aliases = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9))
    check(len(aliases) < 500, f"{len(aliases)} bytes of aliases")
    placed("nutcracker", aliases + b"pool: {servers: [*j]}\n", "YAML aliases that multiply")
    placed("nutcracker", b"[" * 1000000, "YAML a million deep")
    placed("nutcracker", b"- a\n" * 900000, "YAML of 900 000 nodes")
    placed("mcrouter", b'{"pools":{"a":{"servers":["h:1"]}},"route":' + b"[" * 100000 + b"]" * 100000 + b"}", "mcrouter JSON 100 000 deep")
    placed("mcrouter", b'{"pools":{"a":{"servers":["h:1"]}}}\0{', "mcrouter JSON with a NUL")
    many = b",".join(b'"/p%d/":{"type":"PoolRoute","pool":"a"}' % i for i in range(2000))
    write(b'{"pools":{"a":{"servers":["h:1"]}},"routes":{' + many + b"}}")
    done = execute(["where", "k", "--servers-from", f"mcrouter:{path}"], environment)
    judged(done, "mcrouter JSON of 2000 prefixes")
    check(done.status == 0 and (SANITIZED or done.seconds < 1), f"mcrouter JSON of 2000 prefixes: {done.seconds} s, {done}")
    for text in (b'session.save_path=":"', b'session.save_path="', b"session.save_path=,", b'session.save_path="::::,/"'):
        write(text)
        judged(execute(["where", "k", "--servers-from", f"php-ini:{path}"], environment), f"php.ini {text}")
    refused(execute(["where", "k", "--servers-from", "file:/dev/zero"], environment), 78, "a pool file without end")
    refused(execute(["counter", "get", "x", "--config", "/dev/zero"], environment), 78, "a configuration without end")
    write(b"\n" * 1000000)
    done = execute(["where", "k", "-s", "h", "--config", path], environment)
    judged(done, "a million blank lines of configuration")
    check(done.status == 0 and (SANITIZED or done.seconds < 1), f"a million blank lines: {done.seconds} s, {done}")
    write(b"timeout = 1s\n\0nonsense")
    refused(execute(["where", "k", "-s", "h", "--config", path], environment), 78, "a configuration with a NUL")


def words(directory):
    environment = plain_environment(HOME=directory)
    for source in (b"\xff:x", b"\xc3:x", "ü".encode() * 40 + b":x"):
        refused(execute(["where", "k", "--servers-from", source], environment), 64, f"--servers-from {source!r}")
    long = "x" * 59 + "ü" + "y"
    for arguments in (["lock", "acquire", "l", "--ttl", long], ["--timeout", long, "counter", "get", "x"],
                      ["eventlog", "put", "x", "y", "--at", long], ["cache", "run", "x", "--max-bytes", long, "--", "true"],
                      ["cache", "run", "x", "--max-bytes", "17179869184G", "--", "true"],
                      ["eventlog", "put", "x", "y", "--at", "@nan"]):
        refused(execute(["-s", "127.0.0.1:1", *arguments], environment), 64, f"{arguments}")


def cursors(server, directory):
    folder = os.path.join(directory, "cursors")
    os.mkdir(folder)
    cursor = os.path.join(folder, "c")
    with open(cursor + ".tmp", "w", encoding="utf-8") as file:
        file.write("mine")
    victim = os.path.join(directory, "victim")
    with open(victim, "w", encoding="utf-8") as file:
        file.write("not yours")
    server.run("eventlog", "put", "log", "one")
    for kind in ("a file at NAME.tmp", "a link at NAME.tmp"):
        done = server.run("eventlog", "tail", "log", "--cursor", cursor)
        judged(done, kind)
        with open(cursor + ".tmp", encoding="utf-8") as file, open(victim, encoding="utf-8") as other:
            check(file.read() in ("mine", "not yours") and other.read() == "not yours", f"{kind} is left alone")
        os.unlink(cursor + ".tmp")
        os.symlink(victim, cursor + ".tmp")
        server.run("eventlog", "put", "log", "more")
    check(sorted(os.listdir(folder)) == ["c", "c.tmp"], f"nothing is left beside a cursor: {os.listdir(folder)}")
    os.chmod(cursor, 0o640)
    link = os.path.join(directory, "link")
    os.symlink(cursor, link)
    judged(server.run("eventlog", "tail", "log", "--cursor", link), "a cursor that is a link")
    check(os.path.islink(link) and os.stat(cursor).st_mode & 0o777 == 0o640, "a cursor that is a link stays one, its mode too")
    dangling = os.path.join(directory, "dangling")
    os.symlink(os.path.join(folder, "new"), dangling)
    judged(server.run("eventlog", "tail", "log", "--cursor", dangling), "a cursor that is a link to nothing")
    check(os.path.islink(dangling) and os.path.isfile(os.path.join(folder, "new")), "a link to nothing leads to the new cursor")
    refused(server.run("eventlog", "tail", "log", "--cursor", "/dev/null"), 73, "a cursor that is a device")
    check(not os.path.isfile("/dev/null"), "a device stays one")
    done = server.run("lock", "run", "l", "--report", "/dev/stderr", "--", "sh", "-c", "echo child >&2")
    check(done.status == 0 and done.err.startswith("child\n") and '"result":"exited"' in done.err,
          f"--report /dev/stderr is written behind what stands there: {done}")


def terminal(server):
    for control in CONTROLS:
        value = f"a{control}b".encode()
        server.run("eventlog", "put", "log", "-", input=value)
        server.run("array", "add", "list", "-", input=value)
        server.run("hash", "set", "h", "-", input=value + b"\t" + value)
        for arguments in (("eventlog", "fetch", "log"), ("array", "fetch", "list"), ("hash", "fetch", "h")):
            for mode in ("json", "text"):
                done = server.run(*arguments, "-o", mode, "-v")
                judged(done, f"{arguments} -o {mode} of {control!r}")
                shown = (done.out + done.err).replace("\n", "")
                check(done.status == 0 and not [c for c in shown if ord(c) < 32 or 127 <= ord(c) < 160],
                      f"{arguments} -o {mode}: {control!r} reaches the terminal: {done}")
    for name in ("\x1b[31m", "\x9b31m", "\xff"):
        done = server.run("lock", "show", name.encode("latin-1"), "-o", "text", "-v")
        check(not [c for c in done.out + done.err if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160],
              f"the name {name!r} reaches the terminal: {done}")


@contextlib.contextmanager
def answering(directory, answer, pause=None):
    """The path of a server that reads what comes and says `answer`, once or piece by piece with a pause between them."""
    path = os.path.join(directory, f"odd{len(os.listdir(directory))}.sock")
    over = threading.Event()

    def serve(connection):
        while not over.is_set() and (asked := connection.recv(65536)):
            if asked.startswith(b"mn\r\n"):
                connection.sendall(b"MN\r\n")
            if asked.startswith(b"mn") and len(asked) <= 4:
                continue
            for piece in answer:
                connection.sendall(piece)
                if pause and over.wait(pause):
                    break

    with Stub(serve, path):
        yield path
        over.set()


def floods(directory):
    """A server that answers each key with 60 MiB, or never stops."""
    some = b"x" * (1 << 20)

    def values(words):
        for key in words[1:]:
            yield b"VALUE %s 0 %d%s\r\n" % (key, 60 << 20, b" 1" if words[0] == b"gets" else b"")
            yield from [some] * 60
            yield b"\r\n"
        yield b"END\r\n"

    def probed(words):
        yield b"VA %d k%s f0 c1 t-1\r\n" % (60 << 20, words[1])
        yield from [some] * 60
        yield b"\r\n"

    def endless(piece):
        while True:
            yield piece

    floods = {"values": lambda words: probed(words) if words[0] == b"mg" else values(words),
              "NULs": lambda words: endless(bytes(1 << 20)),
              "statistics": lambda words: endless(b"STAT a b\r\n" * 10000),
              "values of one key": lambda words: endless(b"VALUE k 0 1\r\nx\r\n" * 10000),
              "numbers": lambda words: endless(b"1\r\n" * 10000),
              "no end of a line": lambda words: endless(b"1" * 100000)}
    for what, flood in floods.items():
        path = flooding(directory, flood)
        for protocol in ("meta", "classic"):
            for verb in ("array fetch k", "eventlog fetch k", "hash fetch k", "counter get a b c d", "counter incr k", "servers",
                         "cache show k", "where k --probe", "visitors value k", "item list"):
                done = execute([*verb.split(), "-s", f"unix:{path}", "--protocol", protocol], plain_environment(HOME=directory), timeout=30)
                judged(done, f"a flood of {what}: {verb}, {protocol}")


def flooding(directory, flood):
    path = os.path.join(directory, f"flood{len(os.listdir(directory))}.sock")

    def serve(connection):
        with connection.makefile("rb") as asked:
            while words := asked.readline().split():
                if words[0] in (b"mn", b"version"):
                    connection.sendall(b"MN\r\n" if words[0] == b"mn" else b"VERSION 1.6.18\r\n")
                    continue
                for piece in flood(words):
                    connection.sendall(piece)

    Stub(serve, path)
    return path


def servers(directory):
    huge = [b"VALUE x 0 268435456\r\n", *[b"x" * (1 << 20)] * 96]
    stat = [b"STAT a b\r\n"] * 1000
    version = [b"VERSION \x1b]52;c;aGk=\x07\xc2\x9b31m\r\n"]
    for answer, pause, arguments, what in (
            (huge, None, ["array", "fetch", "x"], "a value of 256 MiB announced"),
            (stat, 0.1, ["servers"], "a line of statistics each tenth of a second"),
            (version, None, ["servers", "-o", "text", "-v"], "a version that speaks to the terminal")):
        with answering(directory, answer, pause) as path:
            done = execute(["-s", f"unix:{path}", "--protocol", "meta", "--timeout", "300ms", *arguments], plain_environment(HOME=directory))
        judged(done, what)
        check(not [c for c in done.out + done.err if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160], f"{what}: {done}")


def main():
    for scenario in (files, words, servers, floods):
        with tempfile.TemporaryDirectory() as directory:
            scenario(directory)
    with tempfile.TemporaryDirectory() as directory, Server(directory) as server:
        cursors(server, directory)
        terminal(server)
    finish()


if __name__ == "__main__":
    main()
