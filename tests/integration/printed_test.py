#!/usr/bin/env python3
"""Printed commands, pasted into a shell: they mean the run that printed them, whatever its options and files are called.

Usage: printed_test.py BUILD_DIR
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from checks import check, finish
from program import MCDS, environment
from real_servers import Servers

ODD = ["plain", "-dash", "--as", "it's", 'say"', "$HOME", "`id`", "$(id)", "a;b", "a&b", "*", "~", "#x", "!x", "back\\slash", "<>", "ü", "{a.b}", "="]
PRINTED = "where --guess"


def run(words, directory, given="", **variables):
    return subprocess.run(words, cwd=directory, input=given, capture_output=True, text=True, check=False, env=environment(HOME=directory, **variables))


def pasted_means_the_same(directory, options, **variables):
    """The keys were placed by another client, which `item get` says together with the command that finds it."""
    keys = [f"user{number}" for number in range(20)]
    written = run([MCDS, *options, "--as", "python-memcached", "counter", "incr", "-"], directory, "".join(f"{key}\n" for key in keys), **variables)
    check(written.returncode == 0, f"{options}: {written}")
    said = run([MCDS, *options, "item", "get", *(f"counter:{key}" for key in keys)], directory, **variables).stderr
    message = json.loads(said)["warning"]["message"]
    _, found, command = message.partition("for --as with: ")
    check(found and command.startswith("mcds ") and command.endswith(PRINTED), f"{options}: {said}")
    settings = run([MCDS, *options, "config"], directory, **variables)
    pasted = run(["sh", "-c", f"mcds() {{ \"$MCDS\" \"$@\"; }}\n{command.removesuffix(PRINTED)}config"], directory, MCDS=MCDS, **variables)
    check(settings.returncode == 0 and pasted.stdout == settings.stdout, f"{command}: {pasted}, for {settings}")


def main():
    with Servers(3) as servers:
        directory = servers.directory
        for odd in ODD:
            with open(os.path.join(directory, odd + ".conf"), "w", encoding="utf-8") as file:
                file.write("timeout = 7s\n")
            os.symlink(directory, os.path.join(directory, odd))
            sockets = ",".join(f"unix:{directory}/{odd}/{os.path.basename(path)}" for path in servers.paths)
            pasted_means_the_same(directory, [f"--namespace={odd}"], MCDS_SERVERS=servers.list)
            pasted_means_the_same(directory, [f"--config={odd}.conf", "-s", sockets])
    finish()


if __name__ == "__main__":
    main()
