"""The part of mcds-values(7) that the table of formats makes."""
import json
import re
import subprocess

PAGE = "man/mcds-values.7"
BEGIN, END = '.\\" The table of formats: tests/docs/docs_test.py BUILD_DIR --update writes it.\n', '.\\" End of the table.\n'


def table(mcds):
    done = subprocess.run([mcds, "item", "formats"], check=True, capture_output=True, text=True)
    parts = [BEGIN, ".Bl -tag -width Ds -compact\n"]
    for line in map(json.loads, done.stdout.splitlines()):
        rules = line.get("compressions", "").split() + [""] + line["forms"].split()
        text = " ".join(rules).replace("  ", "; ").strip()
        parts.append(f".It Cm {line['format'].replace('-', chr(92) + '-')}\n{line['clients']}:\n{text}\n")
    return "".join([*parts, ".El\n", END])


def page():
    with open(PAGE, encoding="utf-8") as file:
        return file.read()


def is_of_the_table(mcds):
    return table(mcds) in page()


def update(mcds):
    text = page()
    between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(between.sub(lambda _: table(mcds), text))
