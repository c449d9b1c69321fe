#!/usr/bin/env python3
"""mcds hash watch: what it asks the server, and what it says while the server does not answer. Usage: hash_watch_test.py BUILD_DIR"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import real_servers
from checks import check, finish

FIELDS, INDEX_KEYS, EVERY_S = 50, 17, 0.05


class World:
    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(directory, "m1")
        self.server = real_servers.start_memcached(self.path)
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("MCDS_", "XDG_"))}
        self.environment.update(MCDS_SERVERS=f"unix:{self.path}", HOME=directory)

    def run(self, *words, text=""):
        return subprocess.run([mcds, *words], input=text, env=self.environment, capture_output=True, text=True, check=True).stdout

    def gets(self):
        with real_servers.connected(self.path) as file:
            file.write(b"stats\r\n")
            file.flush()
            lines = {}
            while (line := file.readline().split())[0] != b"END":
                lines[line[1]] = line[2]
        return int(lines[b"cmd_get"])

    def watch(self, *words):
        output = open(os.path.join(self.directory, "out"), "a+", encoding="utf-8")
        errors = open(os.path.join(self.directory, "err"), "a+", encoding="utf-8")
        output.truncate(0)
        errors.truncate(0)
        process = subprocess.Popen([mcds, "--timeout", "300ms", "hash", "watch", "cfg", *words, "--every", f"{int(EVERY_S * 1000)}ms"],
                                   env=self.environment, stdout=output, stderr=errors)
        return process, output, errors


def lines_of(file):
    file.seek(0)
    return [json.loads(line) for line in file.read().rpartition("\n")[0].splitlines()]


def wait_for(what, condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within a minute"
        time.sleep(0.01)


def asks_little(world, words, keys):
    before, began = world.gets(), time.monotonic()
    process, output, errors = world.watch(*words)
    wait_for("the first look", lambda: len(lines_of(output)) == (len(words) or FIELDS))
    wait_for("some looks", lambda: world.gets() > before + 10 * keys)
    world.run("hash", "set", "cfg", "f1", "changed")
    wait_for("a change", lambda: lines_of(output)[-1].get("value") == "changed")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 0, f"hash watch {words} ends with {process.returncode}")
    looks = (time.monotonic() - began) / EVERY_S + 2
    asked = world.gets() - before
    # The first look reads more, and `hash set` is not ours.
    check(asked <= (looks + 3) * keys, f"hash watch {words}: {asked} keys asked for in {looks:.0f} intervals, of {keys} each")
    check(lines_of(output)[-1]["before"] == "v1" and lines_of(errors) == [], f"hash watch {words}: {lines_of(output)[-1]}, {lines_of(errors)}")
    world.run("hash", "set", "cfg", "f1", "v1")


def outlasts_a_pause(world):
    process, output, errors = world.watch()
    wait_for("the first look", lambda: len(lines_of(output)) == FIELDS)
    world.server.send_signal(signal.SIGSTOP)
    wait_for("a warning", lambda: len(lines_of(errors)) == 1)
    world.server.send_signal(signal.SIGCONT)
    world.run("hash", "set", "cfg", "f2", "later")
    wait_for("a change behind the pause", lambda: lines_of(output)[-1].get("value") == "later")
    process.send_signal(signal.SIGTERM)
    check(process.wait(timeout=60) == 0, f"hash watch ends with {process.returncode}")
    check(len(lines_of(output)) == FIELDS + 1, f"a pause is told as {lines_of(output)[FIELDS:]}")
    check("still trying" in lines_of(errors)[0]["warning"]["message"], f"the warning: {lines_of(errors)}")


if __name__ == "__main__":
    mcds = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        try:
            world.run("hash", "set", "cfg", "-", text="".join(f"f{i}\tv{i}\n" for i in range(FIELDS)))
            asks_little(world, (), FIELDS + INDEX_KEYS)
            asks_little(world, ("f1", "f7", "f9"), 3)
            outlasts_a_pause(world)
        finally:
            world.server.send_signal(signal.SIGCONT)
            world.server.kill()
            world.server.wait()
    finish()
