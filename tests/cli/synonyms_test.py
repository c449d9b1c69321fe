#!/usr/bin/env python3
"""Words that are not verbs: every command answers each with the verb that is meant, and a word that reads or takes never with
one that writes or destroys. Usage: synonyms_test.py BUILD_DIR"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from checks import check, finish  # noqa: E402

MCDS = os.path.join(sys.argv[1], "tools", "mcds")
COMMANDS = "lock counter visitors eventlog array table hash cache item".split()
READING = ("get gets read view print see peek list ls all members keys values entries items dump scan each size len length total "
           "sum contains exists member status state info stats describe holder owner ttl age history hist follow watch monitor "
           "top bigkeys verify find query lookup export select pull tell look count_all hgetall smembers lrange sismember").split()
TAKING = "pop shift getdel lpop rpop spop consume receive dequeue".split()
WRITES = set("run acquire renew release forget incr decr set limit remove hit drop put add change replace expire touch load keep "
             "save").union({"take"})
MEANT = """
lock unlock release|lock break release|lock status show|lock ls show|lock ttl show|lock delete release|lock extend renew
counter add incr|counter inc incr|counter read get|counter delete remove|counter reset take|counter list get
visitors get value|visitors count value|visitors visit hit|visitors clear drop
eventlog get fetch|eventlog read fetch|eventlog write put|eventlog append put|eventlog log put|eventlog list fetch
eventlog delete drop|eventlog size info|eventlog follow tail|eventlog push put
array delete remove|array del remove|array clear drop|array append add|array push add|array size count|array list fetch|array get fetch
table delete remove|table rm remove|table clear drop|table members fetch|table size count|table insert add|table contains has|table ls fetch
hash delete remove|hash unset remove|hash clear drop|hash size count|hash list fetch|hash keys fields|hash put set|hash update set
cache get show|cache delete remove|cache invalidate expire|cache ttl show
item bigkeys list|item delete remove|item del remove|item put set|item delete_multi remove|item read get|item ttl show|item top hot
item expire touch|item export save|item migrate -|ring migrate move|ring rebalance move
"""


def answer(command, word):
    done = subprocess.run([MCDS, "-s", "127.0.0.1:9", command, word, "x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env={"PATH": os.environ["PATH"]}, check=False)
    return done.returncode, done.stderr.decode()


def proposed(command, message):
    """The verb that the message proposes; a list of all verbs proposes none."""
    found = re.search(rf"; try mcds {command} (\w+)|did you mean '(\w+)'", message)
    return found and (found[1] or found[2])


def verbs_of(command):
    shown = subprocess.run([MCDS, command, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return set(re.findall(r"^  (\w+) ", shown.split("Verbs:\n")[1].split("\n\n")[0], re.M))


tries = 0
for command in COMMANDS:
    known = verbs_of(command)
    for word in READING + TAKING:
        if word in known:
            continue
        tries += 1
        code, message = answer(command, word)
        verb = proposed(command, message)
        allowed = word in TAKING and (command, verb) == ("counter", "take")
        check(code == 64 and (verb is None or verb not in WRITES or allowed), f"{command} {word}: exit {code}, {message}")
        check(verb is None or verb in known, f"{command} {word} proposes {verb}, which it has not")
check(tries >= 80, f"only {tries} words were tried")

for row in re.findall(r"[^|\n]+", MEANT):
    command, word, verb = row.split()
    code, message = answer(command, word)
    check(code == 64 and (proposed(command, message) or "-") == verb, f"{command} {word}: {message} instead of {verb}")

for word, kept in (("compact", "compaction is automatic"), ("recopy", "mcds-copies(7)")):
    for command in ("table", "hash", "array"):
        check(kept in answer(command, word)[1], f"{command} {word}: {answer(command, word)[1]}")
check("mcds array replace NAME --allow-empty" in answer("array", "clear")[1], answer("array", "clear")[1])

for word, ours in (("members", "table fetch"), ("unlock", "lock release"), ("bigkeys", "item list --sort size"), ("ttl", "item show"),
                   ("migrate", "ring move"), ("delete", "item remove"), ("rm", "item remove"), ("pop", "eventlog fetch"),
                   ("push", "eventlog put"), ("size", "table count"), ("expire", "item touch"), ("clear", "table drop"),
                   ("log", "eventlog put"), ("read", "item get"), ("delete_multi", "item remove"), ("break", "lock release")):
    code, message = answer(word, "x")
    check(code == 64 and "try mcds " in message and f"mcds {ours}" in message, f"mcds {word}: {message}")
for word in ("gte", "fetc", "hsa", "relase", "acuire"):
    commands = {"gte": "hash", "fetc": "table", "hsa": "table", "relase": "lock", "acuire": "lock"}
    check("did you mean" in answer(commands[word], word)[1], f"a slip is not recognised: {word}")
finish()
