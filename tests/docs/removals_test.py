#!/usr/bin/env python3
"""What a page or a golden file loses, the suite `docs` names: in a copy of them, for each command once, a verb's section, a
verb's golden cases, a field's name in the page, and the exit status are removed. Usage: removals_test.py BUILD_DIR"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, HERE)
import docs_test
from checks import check, finish


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def said_without(path, text, command):
    """What docs_test.py says of the command when this file has another text."""
    whole = read(path)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(["python3", "tests/docs/docs_test.py", build, command], check=False, capture_output=True, text=True, timeout=300)
    with open(path, "w", encoding="utf-8") as file:
        file.write(whole)
    return done.returncode, done.stdout


def fails(what, path, text, command, *words):
    check(text != read(path), f"{what}: there is nothing to remove in {path}")
    status, said = said_without(path, text, command)
    check(status == 1 and all(word in said for word in words), f"{what}: `docs` does not name {words}: {said[-500:]}")


def without_section(page, command, verb):
    """The page without the section of this verb; nothing: there is none of it alone."""
    sections = re.findall(r"(?ms)^\.S[sh] [^\n]*\n.*?(?=^\.S[sh] |\Z)", page)
    own = [one for one in sections if docs_test.section_of(one.split("\n", 1)[0][4:], command, verb)]
    for one in own:
        page = page.replace(one, "")
    return page if own else None


def remove_section(command):
    path = f"man/mcds-{command['name']}.1"
    for verb in (one["name"] for one in command["verbs"] if one["name"]):
        text = without_section(read(path), command["name"], verb)
        if text and text != read(path):
            return fails(f"{command['name']} {verb} without its section", path, text, command["name"], verb)
    # A command that is its only verb has the whole page for it.
    option = command["verbs"][0]["options"][0]["names"].split(",")[-1].lstrip("-") if command["verbs"][0]["options"] else None
    if option:
        text = re.sub(rf"(?m)^\.It .*Fl -{option}\b.*\n", ".It Fl -other\n", read(path))
        fails(f"{command['name']} without --{option}", path, text.replace(f"Fl -{option}", "Ar else"), command["name"], option)
    return None


def remove_cases(command):
    verb = command["verbs"][-1]["name"]
    words = f"{command['name']} {verb}".strip()
    paths = [path for path, cases, _ in docs_test.golden_cases() if re.search(rf"mcds .*{re.escape(words)}\b", cases)]
    kept = {path: read(path) for path in set(paths)}
    for path, text in kept.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(rf"(?m)^\$ .*mcds .*{re.escape(words)}\b.*(?:\n> .*)*\n(?:(?!\$ ).*\n)*", "", text))
    done = subprocess.run(["python3", "tests/docs/docs_test.py", build, command["name"]], check=False, capture_output=True, text=True, timeout=300)
    for path, text in kept.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    check(kept and done.returncode == 1 and f"no golden case of mcds {words}" in done.stdout,
          f"{words} without its golden cases: `docs` does not name it: {done.stdout[-500:]}")


def remove_exit_status(command):
    path = f"man/mcds-{command['name']}.1"
    text = re.sub(r"(?ms)^\.Sh EXIT STATUS\n.*?(?=^\.Sh )", "", read(path))
    fails(f"{command['name']} without its exit status", path, text, command["name"], path, "EXIT STATUS")


def remove_field(command):
    """A field of its own: of what groups print mcds(1) may tell."""
    path = f"man/mcds-{command['name']}.1"
    for verb in command["verbs"]:
        for field in verb["fields"]:
            name = field["name"]
            elsewhere = any(docs_test.names_field(read(page), name) for page in glob.glob(f"man/mcds-{command['name']}-*.1"))
            if name != "*" and not field["shared"] and not elsewhere and docs_test.names_field(read(path), name):
                text = re.sub(rf"(\\\(dq|(?<![\w-])){name}(?:_b64)?(?=\\\(dq|(?![\w-]))", r"\1nothing", read(path))
                return fails(f"{command['name']} without the field {name}", path, text, command["name"], name)
    check(not any(verb["fields"] for verb in command["verbs"]), f"{command['name']}: no field that its page alone tells of")
    return None


def main():
    description = docs_test.described()
    for command in description["commands"]:
        remove_section(command)
        remove_cases(command)
        remove_field(command)
        remove_exit_status(command)
    finish()


if __name__ == "__main__":
    build = os.path.abspath(sys.argv[1])
    docs_test.mcds = os.path.join(build, "tools", "mcds")
    os.chdir(os.path.join(HERE, "../.."))
    with tempfile.TemporaryDirectory() as copy:
        for folder in ("man", "tests", "completions"):
            shutil.copytree(folder, os.path.join(copy, folder))
        os.chdir(copy)
        main()
