"""The parts of pages that tests/docs/docs_test.py BUILD_DIR --update writes, from what the binary says."""
import glob
import json
import re
import subprocess

import verb_pages

OF_THE_RING = "mcds --as PROFILE ring check -o text"


def lines_of(mcds, *command):
    done = subprocess.run([mcds, *command], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def checks(mcds):
    parts, about = [], None
    for check in lines_of(mcds, "doctor", "--checks"):
        if check["about"] != about:
            parts.append(("" if about is None else ".El\n") + f".Ss About {check['about']}\n.Bl -tag -width Ds -compact\n")
            about = check["about"]
        needs = f" ; needs {check['needs']}" if check["needs"] else ""
        advice = f" Do this: {check['advice']}" if check["advice"] != OF_THE_RING else ""
        parts.append(f".It Li {check['check']} Pq {check['severity']}{needs}\n".replace(" --", " \\-\\-") + verb_pages.source(check["message"] + advice))
    return "".join([*parts, ".El\n"])


def formats(mcds):
    parts = [".Bl -tag -width Ds -compact\n"]
    for line in lines_of(mcds, "item", "formats"):
        rules = line.get("compressions", "").split() + [""] + line["forms"].split()
        text = " ".join(rules).replace("  ", "; ").strip()
        parts.append(f".It Cm {line['format'].replace('-', chr(92) + '-')}\n{verb_pages.source(line['clients'] + ': ' + text)}")
    return "".join([*parts, ".El\n"])


TABLES = {"man/mcds-checks.7": ("checks", checks), "man/mcds-values.7": ("formats", formats)}


def with_table(page, text, mcds):
    """Between two comments."""
    name, table = TABLES[page]
    begin = f'.\\" The table of {name}: tests/docs/docs_test.py BUILD_DIR --update writes it.\n'
    return re.sub(re.escape(begin) + r'.*?(?=\.\\" End of the table\.)', lambda _: begin + table(mcds), text, flags=re.S)


def written(mcds, description, wanted=None):
    """Each page with generated parts, its text, and the text that it should have; wanted: only pages of these commands."""
    commands = "|".join(wanted or [r"\w+"])
    for page in sorted([*TABLES, "man/mcds.1", *glob.glob("man/mcds-*.1")]):
        if wanted and not re.fullmatch(rf"man/mcds-(?:{commands})(?:-\w+)?\.1", page):
            continue
        with open(page, encoding="utf-8") as file:
            text = file.read()
        yield page, text, with_table(page, text, mcds) if page in TABLES else verb_pages.written(page, text, description)
