#!/usr/bin/env python3
"""The binary's description of itself (mcds __describe) against man pages, completions and golden tests.

Usage: docs_test.py BUILD_DIR [--update]

--update writes the table of the doctor's checks into its page.
"""
import contextlib
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import doctor_page
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
    pages = pages_of(name)
    text = "".join(map(man_text, pages))
    declared = set().union(*(declared_options(verb) for verb in command["verbs"])) if command["verbs"] else set()
    documented = long_options(text)
    check(declared <= documented, f"{page}: does not tell of {sorted(declared - documented)}")
    # Examples may use other commands' options: only option entries must be ours.
    source = ""
    for one in pages:
        with open(one, encoding="utf-8") as file:
            source += file.read()
    entries = set(re.findall(r"^\.It .*?Fl -([a-z][a-z0-9-]*)", source, re.M))
    check_sections(name, command["verbs"], source)
    unknown = {f"--{entry}" for entry in entries} - declared - global_options
    check(not unknown, f"{page}: tells of {sorted(unknown)}, which the binary does not know")
    for verb in command["verbs"]:
        word = f"{name} {verb['name']}".strip()
        check(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None, f"{page}: no word of `{word}`")
        check(len(verb["examples"]) >= 1, f"mcds {word}: no example")
        help_text = output(mcds, *word.split(), "--help")
        check(declared_options(verb) <= long_options(help_text), f"mcds {word} --help: options missing")
        check_width(f"mcds {word} --help", help_text)
        check_completion(word, verb)
    check_width(f"mcds {name} --help", output(mcds, name, "--help"))


def section_of(heading, command, verb):
    return heading == verb.upper() or (heading.startswith(f"mcds {command}") and re.search(rf"\b{verb}\b", heading))


def check_sections(name, verbs, source):
    """Each verb has a section, which tells of its options, unless one about all verbs or one that it refers to does."""
    sections = re.findall(r"(?ms)^\.S[sh] ([^\n]*)\n(.*?)(?=^\.S[sh] |\Z)", source)
    names = [verb["name"] for verb in verbs if verb["name"]]

    def text_of(verb):
        return "".join(body for heading, body in sections if section_of(heading, name, verb))

    shared = "".join(body for heading, body in sections
                     if heading not in ("SYNOPSIS", "EXAMPLES") and not any(section_of(heading, name, verb) for verb in names))
    for verb in verbs:
        if not verb["name"]:
            continue
        own = text_of(verb["name"])
        check(own, f"man/mcds-{name}.1: no section of the verb {verb['name']}")
        own += shared + "".join(text_of(other) for other in re.findall(r"\bthose of (\w+)", own))
        options = {option["names"].split(",")[-1].lstrip("-") for option in verb["options"]}
        missing = {option for option in options if not re.search(rf"Fl (?:\w , Fl )?(?:-[a-z-]+ , )*-{re.escape(option)}\b", own)}
        check(not missing, f"man/mcds-{name}.1: the section of {verb['name']} does not tell of {sorted(missing)}")


def fields_in(value):
    if isinstance(value, dict):
        return set(value).union(*map(fields_in, value.values()))
    return set().union(*map(fields_in, value)) if isinstance(value, list) else set()


def fields_shown(text):
    fields = set()
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            fields |= fields_in(json.loads(re.sub(r"<[a-z0-9]+>", "0", line))) if line.startswith("{") else set()
    return fields


def check_goldens(commands):
    """Each verb has a golden case, and what the cases of one verb print is in its page or in mcds(1)."""
    cases = []
    for path in sorted(glob.glob("tests/cli/*.golden")):
        with open(path, encoding="utf-8") as file:
            cases += re.findall(r"(?ms)^\$ (.*?)\n(.*?)(?=^\$ |\Z)", file.read())
    words = {f"{command['name']} {verb['name']}".strip() for command in commands for verb in command["verbs"]}
    names = "|".join(command["name"] for command in commands)
    one = re.compile(rf"mcds (?:-\S+ (?:(?!(?:{names})\b)\S+ )?)*((?:{names})\b(?: [a-z]+)?)")
    used = [({word if word in words else word.split()[0] for word in one.findall(line)}, said) for line, said in cases]
    with open("man/mcds.1", encoding="utf-8") as file:
        common = file.read()
    for word in sorted(words):
        check(any(word in of for of, _ in used), f"tests/cli: no golden case of mcds {word}")
        text = common
        for page in pages_of(word.split()[0]):
            with open(page, encoding="utf-8") as file:
                text += file.read()
        shown = set().union(*(fields_shown(said) for of, said in used if of == {word}))
        missing = {field for field in shown if not re.search(rf"(?<![a-z_]){re.escape(field.removesuffix('_b64'))}(?![a-z])", text)}
        check(not missing, f"man: mcds {word} prints {sorted(missing)}, and no page tells what that is")


def pages_of(name):
    return [f"man/mcds-{name}.1", *sorted(glob.glob(f"man/mcds-{name}-*.1"))]


def check_width(what, text):
    wide = [line for line in text.splitlines() if len(line) > 80]
    check(not wide, f"{what}: wider than 80 columns: {wide[:1]}")


def check_completion(word, verb):
    offered = set(re.split(r"[\s]", output(mcds, "__complete", *word.split(), "--")))
    missing = declared_options(verb) - offered
    check(not missing, f"mcds __complete {word} --: does not offer {sorted(missing)}")


def check_exit_codes(description):
    declared = {str(code["code"]) for code in description["exit_codes"]}
    text = man_text("man/mcds.1")
    section = text[text.index("EXIT CODES"):]
    section = section[:re.search(r"^\S", section[10:], re.M).start() + 10]
    documented = set(re.findall(r"^\s+(\d+)\b", section, re.M))
    check(declared == documented, f"man/mcds.1: exit codes differ from the binary's: {sorted(declared ^ documented)}")


def main():
    description = json.loads(output(mcds, "__describe"))
    global_options = declared_options({"options": description["global_options"]})
    text = man_text("man/mcds.1")
    check(global_options <= long_options(text), f"man/mcds.1: does not tell of {sorted(global_options - long_options(text))}")
    check_width("mcds --help", output(mcds, "--help"))
    names = {command["name"] for command in description["commands"]}
    for command in description["commands"]:
        check_command(command, global_options)
        check(re.search(rf"mcds-{command['name']}\(1\)", text) is not None, f"man/mcds.1: no word of {command['name']}")
    check_goldens(description["commands"])
    pages = {match[1] for page in glob.glob("man/mcds-*.1") if (match := re.search(r"mcds-(\w+)\.1", page))}
    check(pages <= names, f"man pages of no command: {sorted(pages - names)}")
    check_exit_codes(description)
    check(doctor_page.is_of_the_table(mcds), f"{doctor_page.PAGE}: differs from mcds doctor --checks; tests/docs/docs_test.py BUILD_DIR --update")
    for page in sorted(glob.glob("man/*.[157]")):
        done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", page], check=False, capture_output=True, text=True)
        check(done.returncode == 0, f"mandoc -Tlint: {done.stdout.strip()}")
        lines = len(man_text(page).splitlines())
        check(lines <= 400, f"{page}: {lines} lines, and nobody reads more than 400")
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
    if "--update" in sys.argv[2:]:
        doctor_page.update(mcds)
    main()
