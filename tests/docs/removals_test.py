#!/usr/bin/env python3
"""What a page or a golden file loses, the suite `docs` names: in a copy of them, for each command once, a line of each generated
section and a verb's golden cases are removed. Usage: removals_test.py BUILD_DIR"""
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


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def fails(what, changed, command, words):
    """docs_test.py names these words when the files, {path: text}, are changed so."""
    kept = {path: read(path) for path in changed}
    check(changed and kept != changed, f"{what}: there is nothing to remove")
    for path, text in changed.items():
        write(path, text)
    done = subprocess.run(["python3", "tests/docs/docs_test.py", build, command], check=False, capture_output=True, text=True, timeout=300)
    for path, text in kept.items():
        write(path, text)
    check(done.returncode == 1 and words in done.stdout, f"{what}: `docs` does not say '{words}': {done.stdout[-500:]}")


def remove_from_pages(command):
    for path in [f"man/mcds-{command['name']}.1", *glob.glob(f"man/mcds-{command['name']}-*.1")]:
        text = read(path)
        for heading in ("SYNOPSIS", "OPTIONS", "OUTPUT", "EXIT STATUS"):
            entry = re.search(rf"(?ms)^\.Sh {heading}\n(?:(?!\.Sh )[^\n]*\n)*?(\.(?:Nm|It) [^\n]*\n)", text)
            if entry:
                fails(f"{path} without an entry of {heading}", {path: text[:entry.start(1)] + text[entry.end(1):]}, command["name"], f"{path}: differs")


def remove_cases(command):
    words = f"{command['name']} {command['verbs'][-1]['name']}".strip()
    paths = {path for path, cases, _ in docs_test.golden_cases() if re.search(rf"mcds .*{re.escape(words)}\b", cases)}
    case = re.compile(rf"(?m)^\$ .*mcds .*{re.escape(words)}\b.*(?:\n> .*)*\n(?:(?!\$ ).*\n)*")
    fails(f"{words} without its golden cases", {path: case.sub("", read(path)) for path in paths}, command["name"], f"no golden case of mcds {words}")


def main():
    for command in docs_test.described()["commands"]:
        remove_from_pages(command)
        remove_cases(command)
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
