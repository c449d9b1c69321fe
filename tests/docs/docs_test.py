#!/usr/bin/env python3
"""The binary's description of itself (mcds __describe) against man pages, completions and golden tests.

Usage: docs_test.py BUILD_DIR
"""
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish


def output(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60).stdout


def man_text(page):
    text = subprocess.run(["mandoc", "-Tutf8", "-O", "width=200", page], check=True, capture_output=True, text=True).stdout
    return re.sub(r".\x08", "", text)


def long_options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text.replace("‐", "-").replace("−", "-")))


def declared_options(verb):
    return {name for option in verb["options"] for name in option["names"].split(",") if name.startswith("--")}


def check_command(command, global_options):
    name = command["name"]
    page = f"man/mcds-{name}.1"
    check(os.path.exists(page), f"{page}: missing")
    check(os.path.exists(f"tests/cli/{name}.golden"), f"tests/cli/{name}.golden: missing")
    if not os.path.exists(page):
        return
    text = man_text(page)
    declared = set().union(*(declared_options(verb) for verb in command["verbs"])) if command["verbs"] else set()
    documented = long_options(text)
    check(declared <= documented, f"{page}: does not tell of {sorted(declared - documented)}")
    # Examples may use other commands' options: only option entries must be ours.
    with open(page, encoding="utf-8") as file:
        entries = set(re.findall(r"^\.It .*?Fl -([a-z][a-z0-9-]*)", file.read(), re.M))
    unknown = {f"--{entry}" for entry in entries} - declared - global_options
    check(not unknown, f"{page}: tells of {sorted(unknown)}, which the binary does not know")
    for verb in command["verbs"]:
        word = f"{name} {verb['name']}".strip()
        check(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None, f"{page}: no word of `{word}`")
        check(len(verb["examples"]) >= 1, f"mcds {word}: no example")
        help_text = output(mcds, *word.split(), "--help")
        check(declared_options(verb) <= long_options(help_text), f"mcds {word} --help: options missing")
        check_completion(word, verb)


def check_completion(word, verb):
    offered = set(re.split(r"[\s]", output(mcds, "__complete", *word.split(), "--")))
    missing = declared_options(verb) - offered
    check(not missing, f"mcds __complete {word} --: does not offer {sorted(missing)}")


def check_exit_codes(description):
    declared = {str(code["code"]) for code in description["exit_codes"]}
    text = man_text("man/mcds.1")
    section = text[text.index("EXIT STATUS"):]
    section = section[:re.search(r"^\S", section[11:], re.M).start() + 11]
    documented = set(re.findall(r"^\s+(\d+)\b", section, re.M))
    check(declared == documented, f"man/mcds.1: exit codes differ from the binary's: {sorted(declared ^ documented)}")


def main():
    description = json.loads(output(mcds, "__describe"))
    global_options = declared_options({"options": description["global_options"]})
    text = man_text("man/mcds.1")
    check(global_options <= long_options(text), f"man/mcds.1: does not tell of {sorted(global_options - long_options(text))}")
    names = {command["name"] for command in description["commands"]}
    for command in description["commands"]:
        check_command(command, global_options)
        check(re.search(rf"mcds-{command['name']}\(1\)", text) is not None, f"man/mcds.1: no word of {command['name']}")
    pages = {match[1] for page in glob.glob("man/mcds-*.1") if (match := re.search(r"mcds-(\w+)\.1", page))}
    check(pages <= names, f"man pages of no command: {sorted(pages - names)}")
    check_exit_codes(description)
    for page in sorted(glob.glob("man/*.[157]")):
        done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", page], check=False, capture_output=True, text=True)
        check(done.returncode == 0, f"mandoc -Tlint: {done.stdout.strip()}")
    for completion in ("completions/mcds.bash", "completions/_mcds", "completions/mcds.fish"):
        with open(completion, encoding="utf-8") as file:
            body = file.read()
        check("__complete" in body, f"{completion}: does not ask the binary")
        listed = {name for name in names if re.search(rf"\b{name}\b", body) and name not in ("where", "key")}
        check(not listed, f"{completion}: names commands itself: {sorted(listed)}")
    finish()


if __name__ == "__main__":
    build = os.path.abspath(sys.argv[1])
    mcds = os.path.join(build, "tools", "mcds")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    main()
