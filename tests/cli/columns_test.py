#!/usr/bin/env python3
"""A table is never wider than the terminal, and the columns that its verb is about stay.

Every verb runs with -o text at each of WIDTHS. Usage: columns_test.py BUILD_DIR
"""
import json
import os
import subprocess
import sys
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
import program
from program import MCDS
from real_servers import Servers

WIDTHS = (60, 80, 100, 132)
WHOLE = ("-> mcds", "file ")  # what is copied is not broken
NAME = "a-name-that-is-rather-long:"
# A verb with its words: the columns that stay at any width. Those of one row may stand below each other, those that write bare text have none.
VERBS = {
    "lock run r -- true": "", "lock acquire new{width} --ttl 10m": "lock acquired token ttl server", "lock show l1 l2": "lock held holder ttl server",
    "lock show": "lock held holder ttl server", "lock renew l1 --token {token} --ttl 10m": "lock renewed ttl server",
    "lock release l3 --token none": "lock released", "lock forget l4": "lock forgotten", "lock where l1": "key server",
    "counter incr c": "counter value server", "counter decr c": "counter value server", "counter get c c2": "counter value server",
    "counter set c 7": "counter value server", "counter take c": "counter taken server", "counter limit c9 --max 5 --per 1h": "counter allowed used max",
    "counter remove none none2": "counter removed server", "counter where c": "key server",
    "visitors hit site": "visitors counted current", "visitors value site": "visitors value", "visitors drop none": "visitors dropped",
    "visitors where site": "key server",
    "eventlog put log text": "eventlog id at server", "eventlog fetch log": "id at data", "eventlog tail log -n 1": "id at data",
    "eventlog info log": "eventlog", "eventlog drop none": "eventlog dropped", "eventlog where log": "key server",
    "array add a 1": "array adds", "array change a --add 2": "array adds", "array remove a 2": "array deletes", "array replace a 3 4": "array count",
    "array fetch a": "", "array count a": "array count", "array drop none": "array dropped", "array where a": "key server",
    "table add t x y": "table member added server", "table has t m1 m2": "table member has server", "table fetch t": "table member server",
    "table remove t no none": "table member removed server", "table count t": "table count", "table check t": "table complete count",
    "table drop none": "table dropped", "table where t": "key server",
    "hash set h f v g v": "hash field created server", "hash get h f1 f2": "hash field value server", "hash fetch h": "hash field value server",
    "hash fields h": "hash field", "hash watch h --deadline 2s": "hash field value server", "hash remove h no none": "hash field removed server",
    "hash count h": "hash count", "hash check h": "hash complete count", "hash drop none": "hash dropped", "hash where h": "key server",
    "cache run e --ttl 5m -- true": "", "cache show e": "cache found", "cache expire none": "cache expired", "cache remove none": "cache removed",
    "cache where e": "key server",
    "key 7": "", "where {name}1 {name}2": "key server", "where --probe {name}1 {name}2": "key server copy verdict",
    "ring": "server share", "ring diff --to {one}": "from to keys share", "ring move --to {one} --dry-run": "server keys moves",
    "ring check": "ok problems",
    "servers": "server up used", "servers --every 100ms -n 1": "server up gets/s", "servers --clients": "server client connections",
    "servers --stats": "", "capacity --for 1s": "server memory", "doctor --for 1s": "",
    "item get i": "", "item formats": "format", "item show {name}1 {name}2": "key size ttl server", "item set i v": "key stored server",
    "item touch {name}1 none --ttl 1h": "key touched server", "item remove no none": "key removed server", "item list": "key size ttl server",
    "item list --sort size": "key size server", "item list --sort idle": "key idle server", "item list --sort ttl": "key ttl server",
    "item list --by-prefix": "prefix keys size share", "item list --histogram": "chunk keys size share", "item save {saved}": "server saved",
    "item load {saved} --dry-run": "server", "item keep --on {first} -- true": "server saved",
    "item hot --for 1s": "server events/s", "item hot --for 1s --sort misses": "server misses/s",
    "config": "setting value from", "sandbox -- true": "",
}


def environment(servers, width):
    return program.environment(MCDS_SERVERS=servers, COLUMNS=str(width), LANG="C.UTF-8",
                               HOME=os.path.dirname(servers.split("unix:")[1].split(",")[0]))


def width_of(line):
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)


def check_verb(line, columns, width, servers, values):
    words = [word.format(**values) for word in line.split()]
    try:
        done = subprocess.run([MCDS, "-o", "text", *words], env=environment(servers, width), stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired as failure:
        check(False, f"mcds {line}: {failure}")
        return
    check(done.returncode in (0, 1, 2, 75), f"mcds {line}: exit {done.returncode}: {done.stderr}")
    lines = done.stdout.splitlines()
    lines = [text for text in lines if not text.lstrip().startswith(WHOLE)]
    check(all(width_of(text) <= width for text in lines), f"{width} columns, mcds {line}: wider than it is:\n{done.stdout}")
    tables = done.stdout.split("\n\n")
    heads = [set(table.split("\n")[0].split()) | {text.split()[0] for text in table.split("\n") if text.strip()} for table in tables]
    check(any(set(columns.split()) <= head for head in heads), f"{width} columns, mcds {line}: '{columns}' is not all in\n{done.stdout}{done.stderr}")


def fill(servers):
    """The token of a lock."""
    def mcds(*words, text=None):
        return subprocess.run([MCDS, *words], env=environment(servers, 80), input=text, capture_output=True, text=True, check=True, timeout=60).stdout
    token = json.loads(mcds("lock", "acquire", "l1", "--ttl", "10m", "--note", "the backup of the night"))["token"]
    for name in ("l2", "l3"):
        mcds("lock", "acquire", name, "--ttl", "10m")
    mcds("counter", "set", "c", "1234567")
    mcds("counter", "set", "c2", "1")
    mcds("visitors", "hit", "site", "--id", "bob")
    mcds("eventlog", "put", "log", "-", text="".join(f"an event with a text of some length, number {number}\n" for number in range(4)))
    mcds("array", "add", "a", "one", "two")
    mcds("table", "add", "t", "-", text="m1\nm2\n" + NAME + "member\n")
    mcds("hash", "set", "h", "-", text="f1\tvalue\nf2\ta value that is longer than the others are, and goes on\n")
    for number in (1, 2, 3):
        mcds("item", "set", f"{NAME}{number}", "x" * 1000 * number, "--ttl", f"{number}h")
    return token


def main():
    described = json.loads(subprocess.run([MCDS, "__describe"], capture_output=True, check=True, timeout=60).stdout)
    verbs = {f"{command['name']} {verb['name']}".strip() for command in described["commands"] for verb in command["verbs"]}
    covered = {name for name in verbs for line in VERBS if (line + " ").startswith(name + " ")}
    check(covered == verbs, f"not in VERBS: {sorted(verbs - covered)}")
    with Servers(["cache1.sock", "cache2.sock", "cache3.sock"]) as real:
        named = ",".join(f"cache{number}.example.com={server}" for number, server in enumerate(real.list.split(","), 1))
        token = fill(named)
        for width in WIDTHS:
            values = {"token": token, "width": width, "name": NAME, "one": named.split(",", maxsplit=1)[0], "first": "cache1.example.com",
                      "saved": os.path.join(real.directory, "saved")}
            for line, columns in VERBS.items():
                check_verb(line, columns, width, named, values)
    finish()


if __name__ == "__main__":
    main()
