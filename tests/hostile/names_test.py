#!/usr/bin/env python3
"""A server whose statistics, version and keys, and a pool whose names, are made to write into our output: members of our JSON,
lines of ours, commands for a terminal.

Usage: names_test.py BUILD_DIR. 200 of them go through every form of output of the verbs that print them: JSON stays valid, with
our members alone, and no control character reaches standard output or standard error.
"""
import json
import os
import pty
import random
import re
import select
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import FULL, check, finish
from program import MCDS, clean_environment
from stub import Stub

MARK = "zqz"  # in each of them, and in nothing of ours
PIECES = ['","up":false,"x":"', '"', "\\", "\\u0022", "\x1b[2J\x1b[31m", "\x1b]0;title\x07", "\x9b31m", "\u202e", "\u2066", "\u2028", "\u009b2J",
          "\x7f", "\x08\x08", "{}", "}", "],[", ":", ",", "'", "$(touch x)", "`id`", "%s%n", "\r", "\t", "\xff", "\xc3(", "\u0000", "é", "日本",
          'server="b"} 1', "# EOF", "\x85", "\u061c", "\ufeff"]
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
NUMBERS = {"pid": "1", "uptime": "5000", "time": "1795000000", "version": "1.6.18", "curr_items": "3", "total_items": "3", "bytes": "300",
           "limit_maxbytes": "67108864", "curr_connections": "2", "max_connections": "1024", "evictions": "0", "get_hits": "1", "get_misses": "1",
           "cmd_get": "2", "cmd_set": "3", "threads": "4"}


def hostile(dice):
    return MARK + "".join(dice.choice(PIECES) for _ in range(dice.randrange(1, 4))) + MARK


def word(text):
    """Without what ends a word or a line of the protocol."""
    return re.sub("[ \r\n\t\0]", "", text).encode("utf-8", "surrogateescape")


class Server(Stub):
    def __init__(self, names, path):
        self.names = names
        super().__init__(self.talk, path)

    def statistics(self):
        lines = [f"STAT {name} {value}".encode() for name, value in NUMBERS.items()]
        lines += [b"STAT " + name + b" 7" for name in {word(name) for name in self.names}]
        lines += [b"STAT note%d " % i + word(name) for i, name in enumerate(self.names)]
        return b"\r\n".join(lines) + b"\r\nEND\r\n"

    def dump(self):
        keys = [urllib.parse.quote_from_bytes(name.encode("utf-8", "surrogateescape")) for name in self.names]
        return "".join(f"key={key} exp=-1 la=1795000000 cas=1 fetch=no cls=1 size=60\r\n" for key in keys).encode() + b"END\r\n"

    def talk(self, connection):
        rest = b""
        while more := connection.recv(65536):
            rest += more
            while b"\r\n" in rest:
                line, rest = rest.split(b"\r\n", 1)
                connection.sendall(self.answer(line))

    def answer(self, line):
        if line == b"mn":
            return b"MN\r\n"
        if line == b"version":
            return b"VERSION " + word(self.names[0]) + b"\r\n"
        if line.startswith(b"stats"):
            return self.statistics()
        if line.startswith(b"lru_crawler"):
            return self.dump()
        if line.startswith(b"watch"):
            return b"OK\r\n"
        if line.startswith(b"mg"):
            return b"EN\r\n"
        return b"END\r\n"


FORMS = {
    "json": [["servers"], ["servers", "--stats"], ["servers", "--stats", "items"], ["doctor", "--for", "100ms", "--live"], ["item", "list"],
             ["item", "list", "--by-prefix"], ["item", "list", "--sort", "size"], ["where", "--probe", "--live", "--list"], ["where", "--guess"],
             ["where", "k"], ["ring"], ["ring", "check"], ["config"]],
    "text": [["servers"], ["servers", "--stats"], ["doctor", "--for", "100ms", "--live"], ["item", "list"], ["item", "list", "--by-prefix"],
             ["where", "--probe", "--live", "--list"], ["where", "k", "--explain"], ["ring"], ["ring", "check"], ["config"]],
    "value": [["servers"], ["servers", "--stats"], ["doctor", "--for", "100ms"], ["item", "list"], ["item", "list", "--by-prefix"], ["where", "--guess"],
              ["where", "k"], ["ring"]],
    "openmetrics": [["servers"], ["doctor", "--for", "100ms"]],
}


def members(pairs):
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError(f"twice: {names}")
    return dict(pairs)


def judge(what, form, out, err):
    for stream, text in (("stdout", out), ("stderr", err)):
        try:
            shown = text.decode()
        except UnicodeDecodeError:
            check(False, f"{what}: {stream} is not UTF-8: {text[:400]!r}")
            continue
        found = CONTROLS.search(shown)
        check(found is None, f"{what}: {stream} has {found and found[0]!r}: {shown[max(0, found.start() - 60):found.start() + 60] if found else ''!r}")
    for line in out.decode("utf-8", "replace").splitlines() if form == "json" else ():
        try:
            object_ = json.loads(line, object_pairs_hook=members)
        except ValueError as error:
            check(False, f"{what}: {error}: {line[:400]}")
            continue
        check(not any(MARK in name for name in object_), f"{what}: members of the server: {line[:400]}")
        if "up" in object_:
            check(object_["up"] is True, f"{what}: {line[:400]}")
    if form == "openmetrics":
        lines = out.decode("utf-8", "replace").splitlines()
        check(bool(lines) and lines[-1] == "# EOF" and lines.count("# EOF") == 1, f"{what}: {lines[-1:]}")
        sample = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [-+0-9.eE]+$|# (HELP|TYPE|EOF)')
        check(all(sample.match(line) for line in lines), f"{what}: {[line for line in lines if not sample.match(line)][:3]}")


def screen(environment):
    """servers --every on a terminal: what reaches it beside our own sequences."""
    process, terminal = pty.fork()
    if process == 0:
        os.execve(MCDS, [MCDS, "servers", "--every", "300ms", "--hot"], {**environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"})
    out, until = b"", time.monotonic() + 1.5
    while time.monotonic() < until:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                out += os.read(terminal, 65536)
            except OSError:
                break
    os.write(terminal, b"q")
    time.sleep(0.2)
    os.close(terminal)
    os.kill(process, 15)
    os.waitpid(process, 0)
    return out


def main():
    dice = random.Random(int(os.environ.get("MCDS_TEST_SEED", "1")))
    clean = clean_environment(LC_ALL="C.UTF-8", HOME="/nowhere")
    with tempfile.TemporaryDirectory(prefix="mcds-names-") as directory:
        for turn in range(20 if FULL else 10):
            names = [hostile(dice) for _ in range(10)]
            path = os.path.join(directory, f"{turn}.sock")
            with Server(names, path):
                label = re.sub("[,=/\0 \t\r\n]", "", names[1])
                for servers in (f"unix:{path}", f"{label}=unix:{path}"):
                    environment = {**clean, "MCDS_SERVERS": servers}
                    for form, commands in FORMS.items():
                        for command in commands:
                            done = subprocess.run([MCDS, *command, "-o", form], env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
                            refused = done.returncode == 64 and not done.stdout  # a label that no list can have
                            judge(f"{command} -o {form}, {names}, {servers!r}", "json" if refused else form, done.stdout, done.stderr)
                if turn % 5 == 0:
                    out = screen(environment)
                    for piece in ("\x1b[2J\x1b[31m", "\x9b31m", "\u202e", "\u009b2J", "\x1b]0;", "\x07"):
                        check(piece.encode("utf-8", "surrogateescape") not in out, f"the screen got {piece!r} of {names}")
                    check(len(out) > 200 or out.startswith(b"mcds: server "), f"no screen: {out!r}")
    finish(most=60)


if __name__ == "__main__":
    main()
