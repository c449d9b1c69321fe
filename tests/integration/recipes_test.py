#!/usr/bin/env python3
"""The scripts of tests/integration/recipes on real servers; and mcds-recipes(7) shows them as they are. Usage: recipes_test.py BUILD_DIR"""
import contextlib
import glob
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish
from program import Workplace, environment, wait_for
from real_servers import Servers

RECIPES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recipes")


class World(Workplace):
    def __init__(self, directory):
        self.servers = Servers(3).__enter__()
        super().__init__(directory, environment(HOME=directory, MCDS_SERVERS=self.servers.list))
        self.environment["PATH"] = f"{RECIPES}:{self.environment['PATH']}"

    def start(self, *words, env=(), **options):
        return super().start(*words, env={**self.environment, **dict(env)}, start_new_session=True, **{"stderr": None, **options})

    def run(self, *words, text="", status=0, **options):
        process = self.start(*words, stdin=subprocess.PIPE, **options)
        output = process.communicate(text, timeout=60)[0]
        check(status is None or process.returncode == status, f"{words}: ends with {process.returncode}: {output}")
        return output

    def read(self, name):
        with contextlib.suppress(FileNotFoundError):
            return super().read(name)
        return None

    def end(self):
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        super().end()
        self.servers.__exit__()


def leader(world):
    os.mkfifo(os.path.join(world.directory, "go"))
    first = world.start("leader", "sh", "-c", "echo first >>led; read x <go; echo $x >>led")
    wait_for(lambda: world.read("led") == "first\n", "the first leads")
    for _ in range(3):
        world.run("leader", "sh", "-c", "echo another >>led")
    check(world.read("led") == "first\n", f"two lead: {world.read('led')}")
    with open(os.path.join(world.directory, "go"), "w", encoding="utf-8") as file:
        file.write("done\n")
    check(first.wait(timeout=60) == 0, f"the leader ends with {first.returncode}")
    world.run("leader", "sh", "-c", "echo next >>led")
    check(world.read("led") == "first\ndone\nnext\n", f"the next does not lead: {world.read('led')}")


def alert(world):
    mail = {"MAIL": "tee -a sent"}
    for _ in range(3):
        world.run("alert", "disk-full", "web3", env=mail)
    check(world.read("sent") == "disk-full on web3\n", f"one kind of alert: {world.read('sent')}")
    for _ in range(3):
        world.run("alert", "disk full, 100 %", "-n", env=mail)
    check(world.read("sent") == "disk-full on web3\ndisk full, 100 % on -n\n", f"words that are no counter's name: {world.read('sent')}")
    for number in range(25):
        world.run("alert", f"kind{number}", "web3", env=mail)
    # Behind the first hour's end there may have been some more.
    sent = world.read("sent").splitlines()
    check(20 <= len(sent) <= 26, f"{len(sent)} alerts")
    world.run("alert", "disk-full", "web3", env={**mail, "MCDS_SERVERS": "unix:/nonexistent"})
    check(world.read("sent").splitlines()[len(sent):] == ["disk-full on web3"], "not sent without memcached")


def blocklist(world):
    attempt = "Nov 23 16:43:09 web1 sshd[4711]: Failed password for root from {} port 22 ssh2\n".format
    log = attempt("10.9.9.9") * 3 + attempt("10.1.2.3") * 5 + "Nov 23 16:43:10 web1 sshd[4711]: Accepted password for ann from 10.7.7.7 port 22\n"
    world.run("blocklist", text=log)
    world.run("mcds", "table", "has", "blocked", "10.1.2.3")
    world.run("mcds", "table", "has", "blocked", "10.9.9.9", "10.7.7.7", status=1)
    probed = json.loads(world.run("mcds", "where", "table:blocked:v:10.1.2.3", "--probe"))
    check(any(3500 < (copy.get("ttl_s") or 0) <= 3600 for copy in probed["copies"]), f"blocked for how long: {probed}")


def worker(world):
    jobs = [f"job {number}" for number in range(60)]
    world.run("mcds", "table", "add", "jobs", "-", text="".join(job + "\n" for job in jobs))
    workers = [world.start("worker", "sh", "-c", 'echo "$1" >>done', "do-job") for _ in range(8)]
    for one in workers:
        one.communicate(timeout=60)
    check(sorted(world.read("done").splitlines()) == sorted(jobs), f"jobs done: {sorted(world.read('done').splitlines())}")
    check(world.run("mcds", "table", "count", "jobs", "-o", "value") == "0\n", "jobs are left")
    # Jobs that look like options of ours, and work that reads its input.
    odd = sorted(["-", "--help", "@/etc/hostname", "@@", "-q", "a", "b", " c ", "\\d"])
    world.run("mcds", "table", "add", "jobs", "-", text="".join(job + "\n" for job in odd))
    world.run("worker", "sh", "-c", 'cat >/dev/null; printf "%s\\n" "$1" >>odd', "do-job")
    check(sorted((world.read("odd") or "").splitlines()) == odd, f"odd jobs done: {world.read('odd')}")
    check(world.run("mcds", "table", "count", "jobs", "-o", "value") == "0\n", "odd jobs are left")


def workers_that_are_killed(world):
    """Five workers, of which one is killed again and again: no job is lost, and none runs at the same time twice."""
    count, kills = (10_000, 50) if FULL else (80, 6)
    jobs = [f"job{number}" for number in range(count)]
    world.run("mcds", "table", "add", "jobs", "-", text="".join(job + "\n" for job in jobs))
    do_job = os.path.join(world.directory, "do-job")
    with open(do_job, "w", encoding="utf-8") as file:
        # The kernel frees the lock of who was killed.
        file.write('#!/bin/sh\nflock -n "held.$1" sh -c \'sleep 0.01; echo "$1" >>done\' sh "$1" || echo "$1" >>twice\n')
    os.chmod(do_job, 0o755)
    start = lambda: world.start("worker", "./do-job", env={"JOB_TTL": "3s"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers = [start() for _ in range(5)]
    for number in range(kills):
        time.sleep(random.uniform(0.05, 0.3))
        victim = workers[number % 5]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()
        workers[number % 5] = start()
    for one in workers:
        one.wait(timeout=1500 if count > 1000 else 120)
    done = (world.read("done") or "").splitlines()
    check(set(done) == set(jobs), f"jobs lost: {sorted(set(jobs) - set(done))[:5]}")
    check(len(done) - count <= kills, f"{len(done) - count} jobs were done again after {kills} kills")
    check(world.read("twice") is None, f"at the same time twice: {world.read('twice')}")
    check(world.run("mcds", "table", "count", "jobs", "-o", "value") == "0\n", "jobs are left in the table")


def flags(world):
    os.mkdir(os.path.join(world.directory, "run"))
    world.run("mcds", "hash", "set", "flags", "beta", "on", "../evil", "x")
    world.start("flags", "run")
    wait_for(lambda: world.read("run/beta") == "on", "a flag that was there")
    world.run("mcds", "hash", "set", "flags", "beta", "off", "dark", "a b")
    wait_for(lambda: world.read("run/beta") == "off" and world.read("run/dark") == "a b", "flags that changed")
    world.run("mcds", "hash", "remove", "flags", "beta")
    wait_for(lambda: world.read("run/beta") is None, "a flag that was removed")
    check(world.read("evil") is None, "a file outside of the directory")
    # What is no single line is not taken for other flags, and the file of one name is not that of another.
    world.run("mcds", "hash", "set", "flags", "gamma", "on", "x.new", "1", ".new", "2")
    wait_for(lambda: world.read("run/x.new") == "1" and world.read("run/gamma") == "on", "a name that ends in .new")
    world.run("mcds", "hash", "set", "flags", "banner", "hello\ngamma\ndark\t", "dark\tgamma", "3", "x", "2")
    wait_for(lambda: world.read("run/x") == "2", "a name beside")
    world.run("mcds", "hash", "set", "flags", "last", "1")
    wait_for(lambda: world.read("run/last") == "1", "the next look")
    found = {name: world.read(f"run/{name}") for name in os.listdir(os.path.join(world.directory, "run"))}
    check(found == {"dark": "a b", "gamma": "on", "x.new": "1", "x": "2", "last": "1"}, f"flags: {found}")


def report(world):
    with open(os.path.join(world.directory, "make-report"), "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\necho x >>made\necho "$1: $(wc -l <made)"\n')
    os.chmod(file.name, 0o755)
    check([world.run("report", "2026-11") for _ in range(3)] == ["2026-11: 1\n"] * 3, "a report that is made again")
    world.run("mcds", "cache", "expire", "--tag", "orders")
    check([world.run("report", "2026-11") for _ in range(3)] == ["2026-11: 2\n"] * 3, "orders have changed")
    world.run("mcds", "cache", "expire", "--tag", "nothing", status=1)
    check(world.run("report", "2026-11") == "2026-11: 2\n", "something else has changed")


def shown():
    """What the page shows, by the name of the script."""
    with open("man/mcds-recipes.7", encoding="utf-8") as file:
        found = re.findall(r"^\.Ss (\w+)\n.*?^\.Bd -literal\n(.*?)^\.Ed$", file.read(), re.M | re.S)
    return {name: text.replace(r"\&", "").replace(r"\(dq", '"').replace(r"\(aq", "'").replace(r"\e", "\\") for name, text in found}


def main():
    page = shown()
    scripts = {os.path.basename(path): path for path in glob.glob(f"{RECIPES}/*")}
    check(page.keys() == scripts.keys(), f"mcds-recipes(7) shows {sorted(page)} instead of {sorted(scripts)}")
    for name, path in scripts.items():
        with open(path, encoding="utf-8") as file:
            check(page.get(name) == file.read(), f"mcds-recipes(7) shows another {name} than {path}")
    for recipe in (leader, alert, blocklist, worker, workers_that_are_killed, flags, report):
        check(recipe in (workers_that_are_killed,) or recipe.__name__ in scripts, f"{recipe.__name__} is no script")
        with tempfile.TemporaryDirectory() as directory:
            world = World(directory)
            try:
                recipe(world)
            finally:
                world.end()
    finish()


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    main()
