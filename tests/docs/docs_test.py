#!/usr/bin/env python3
"""The binary's description of itself (mcds __describe) against man pages, completions and golden tests.

Usage: docs_test.py BUILD_DIR [--update] [COMMAND…]

--update writes the generated parts into the pages. With commands, only these are checked.
"""
import contextlib
import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish
from generated_part import written

WILDCARD = "any value"
# Names options that are gone.
CHANGES = "man/mcds-changes.7"
# Options of other programs.
FOREIGN = {"--cas", "--execute", "--job", "--static"}
KINDS = {int: ("integer", "number"), float: ("number",), str: ("string",), bool: ("boolean",), type(None): ("null",), list: (), dict: ()}
# Fields that need servers in a state that no golden case brings about.
SEEN_BY = {
    "where": {"tests/unit/guess_test.cpp": "prefix"},
    "table check": {"tests/unit/elements_copies_test.cpp": "divergent"},
    "ring move": {"tests/integration/ring_move_servers_test.py": "restarted flushed lost"},
    "servers": {"tests/integration/access_test.py": "certificate_ends_at", "tests/integration/credentials_test.py": "login_in_clear",
                "tests/unit/rates_test.cpp": "restarted"},
    "capacity": {"tests/integration/capacity_test.py": "cost coverage estimate estimate_if_one_is_lost gets hit_ratio"},
    "item save": {"tests/integration/item_save_test.py": "structure reason"},
}


def output(*command):
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60).stdout


def man_text(page, width=200):
    text = subprocess.run(["mandoc", "-Tutf8", "-O", f"width={width}", page], check=True, capture_output=True, text=True).stdout
    return re.sub(r".\x08", "", text)


def long_options(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text.replace("‐", "-").replace("−", "-")))


def declared_options(verb):
    return {name for option in verb["options"] for name in option["names"].split(",") if name.startswith("--")}


def check_command(command):
    name = command["name"]
    check(os.path.exists(f"man/mcds-{name}.1"), f"man/mcds-{name}.1: missing")
    check(os.path.exists(f"tests/cli/{name}.golden"), f"tests/cli/{name}.golden: missing")
    for verb in command["verbs"]:
        word = f"{name} {verb['name']}".strip()
        check(len(verb["examples"]) >= 1, f"mcds {word}: no example")
        help_text = output(mcds, *word.split(), "--help")
        check(declared_options(verb) <= long_options(help_text), f"mcds {word} --help: options missing")
        check_width(f"mcds {word} --help", help_text)
        check_completion(word, verb)
    check_width(f"mcds {name} --help", output(mcds, name, "--help"))


def fits(schema, value):
    """As JSON Schema says, but that a field must be declared. A wildcard fits everything."""
    if value == WILDCARD or "anyOf" in schema:
        return value == WILDCARD or any(fits(one, value) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return isinstance(value, list) and all(fits(schema["items"], one) for one in value)
    if schema.get("type") == "object":
        return isinstance(value, dict) and fits_object(schema, value)
    return "not" not in schema and ("type" not in schema or schema["type"] in KINDS[type(value)])


def fits_object(schema, value):
    known, others = schema.get("properties", {}), schema.get("additionalProperties", "properties" not in schema)
    either = [{one["required"][0] for one in pair["oneOf"]} for pair in schema.get("allOf", [])]
    complete = all(name in value for name in schema.get("required", [])) and all(len(names & set(value)) == 1 for names in either)
    return complete and all(fits(known.get(name, others), one) if name in known or isinstance(others, dict) else others
                            for name, one in value.items())


def answers_in(text):
    """The lines that are JSON objects, but for errors, warnings and schemas."""
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            line = re.sub(r"\{<any>[^{}]*\}|(?<=[:\[,])<any>(?=[,}\]])", f'"{WILDCARD}"', line)
            answer = json.loads(re.sub(r"<[a-z0-9]+>", "0", line)) if line.startswith("{") else {}
            if not set(answer) <= {"error", "warning"} and "$schema" not in answer:
                yield answer


def golden_cases():
    for path in sorted(glob.glob("tests/cli/*.golden")):
        with open(path, encoding="utf-8") as file:
            for command, said in re.findall(r"(?m)^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", file.read()):
                yield path, command, said


def elsewhere(word):
    """What tests other than golden ones see of a verb's answer."""
    for path, fields in SEEN_BY.get(word, {}).items():
        with open(path, encoding="utf-8") as file:
            text = file.read()
        missing = {field for field in fields.split() if not re.search(rf"\b{re.escape(field)}\b", text)}
        check(not missing, f"{path}: was to see the fields {sorted(missing)} of mcds {word}")
        yield from fields.split()


def check_exit_status(command, cases):
    """The codes with which golden cases of the command end are declared, but for those of a child and of any command."""
    name = command["name"]
    with_child = {f"{name} {verb['name']}".strip() for verb in command["verbs"] if verb["child"]}
    for path, words, text, said in cases:
        ended = re.search(r"(?m)^\? (\d+)$", said)
        if ended and words[-1].split()[0] == name and words[-1] not in with_child and not re.search(r" -E |\btimeout\b|\|", text):
            check(ended[1] in {*command["exits"], "77", "78"}, f"mcds {name} declares no exit code {ended[1]}, with which this ends: {path}: {text}")


def check_goldens(commands, wanted):
    """Each verb has a golden case; what the cases print is declared, and what is declared is printed."""
    verbs = {f"{command['name']} {verb['name']}".strip(): verb for command in commands for verb in command["verbs"]}
    names = "|".join(command["name"] for command in commands)
    one = re.compile(rf"mcds (?:-\S+ (?:(?!(?:{names})\b)\S+ )?)*((?:{names})\b(?: [a-z]+)?)")
    printed = {word: set() for word in verbs}
    used = set()
    cases = []
    for path, command, said in golden_cases():
        words = [word if word in verbs else word.split()[0] for word in one.findall(command)]
        of = set(words) & set(verbs)
        cases += [(path, words, command, said)] if of else []
        used |= of
        for answer in answers_in(said):
            printers = [word for word in of if fits(verbs[word]["schema"], answer)]
            # A bare answer may be a value that is JSON.
            check(printers or not of or re.search("-o (?:value|text)", command), f"{path}: {sorted(of)} declare no such answer: {answer}")
            for word in printers:
                printed[word] |= {name.removesuffix("_b64") for name in answer}
    for command in commands:
        if command["name"] in wanted:
            check_exit_status(command, cases)
    for word, fields in printed.items():
        check(word in used or word.split()[0] not in wanted, f"tests/cli: no golden case of mcds {word}")
        # table and hash share all verbs but those that set and get.
        fields |= printed.get(word.replace("hash", "table"), set()) | set(elsewhere(word))
    anywhere = set().union(*printed.values())
    for word, verb in verbs.items():
        never = {field["name"] for field in verb["fields"]} - {"*"} - printed[word]
        never -= anywhere & {field["name"] for field in verb["fields"] if field["shared"]}
        check(not never or word.split()[0] not in wanted, f"tests/cli: no golden case of mcds {word} prints {sorted(never)}")


def source_of(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


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


def described():
    done = subprocess.run([mcds, "__describe"], check=False, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:  # a field that the dictionary does not know
        check(False, f"mcds __describe: {done.stderr.strip()}")
        finish()
    return json.loads(done.stdout)


def check_generated(description, wanted, update):
    for page, text, made in written(mcds, description, wanted):
        if update and made != text:
            with open(page, "w", encoding="utf-8") as file:
                file.write(made)
        check(update or made == text, f"{page}: differs from what mcds declares; tests/docs/docs_test.py BUILD_DIR --update")


def check_page(page, options):
    source = source_of(page)
    done = subprocess.run(["mandoc", "-Tlint", "-W", "warning", page], check=False, capture_output=True, text=True)
    check(done.returncode == 0, f"mandoc -Tlint: {done.stdout.strip()}")
    rendered = man_text(page, width=80)
    check_width(page, rendered)
    check(len(rendered.splitlines()) < 400 and source.count("\n") <= 400, f"{page}: more than 400 lines, and nobody reads that many")
    long = [line for line in source.splitlines() if len(line) > 128]
    check(not long, f"{page}: a line of more than 128 columns: {long[:1]}")
    unknown = long_options(man_text(page)) - options - FOREIGN
    check(not unknown or page == CHANGES, f"{page}: no command has the options {sorted(unknown)}")


def main(wanted, update):
    description = described()
    check_generated(description, wanted, update)
    global_options = declared_options({"options": description["global_options"]})
    text = man_text("man/mcds.1")
    check(global_options <= long_options(text), f"man/mcds.1: does not tell of {sorted(global_options - long_options(text))}")
    check_width("mcds --help", output(mcds, "--help"))
    names = {command["name"] for command in description["commands"]}
    for command in description["commands"]:
        if not wanted or command["name"] in wanted:
            check_command(command)
            check(re.search(rf"mcds-{command['name']}\(1\)", text) is not None, f"man/mcds.1: no word of {command['name']}")
    check_goldens(description["commands"], wanted or names)
    if wanted:
        finish()
    pages = {match[1] for page in glob.glob("man/mcds-*.1") if (match := re.search(r"mcds-(\w+)\.1", page))}
    check(pages <= names, f"man pages of no command: {sorted(pages - names)}")
    check_exit_codes(description)
    options = global_options | {"--help", "--version", "--schema"}
    options = options.union(*(declared_options(verb) for command in description["commands"] for verb in command["verbs"]))
    for page in sorted(glob.glob("man/*.[157]")):
        check_page(page, options)
    check(sum(source_of(page).count("\n") for page in glob.glob("man/*.[157]")) <= 6500, "man: more than 6500 lines in all")
    for completion in ("completions/mcds.bash", "completions/_mcds", "completions/mcds.fish"):
        body = source_of(completion)
        check("__complete" in body, f"{completion}: does not ask the binary")
        listed = {name for name in names if re.search(rf"\b{name}\b", body) and name not in ("where", "key")}
        check(not listed, f"{completion}: names commands itself: {sorted(listed)}")
    finish()


if __name__ == "__main__":
    build = os.path.abspath(sys.argv[1])
    mcds = os.path.join(build, "tools", "mcds")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    main([word for word in sys.argv[2:] if word != "--update"], "--update" in sys.argv)
