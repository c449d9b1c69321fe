"""The part of mcds-checks(7) that the table of checks makes."""
import json
import re
import subprocess

PAGE = "man/mcds-checks.7"
BEGIN, END = '.\\" The table of checks: tests/docs/docs_test.py BUILD_DIR --update writes it.\n', '.\\" End of the table.\n'

OF_THE_RING = "mcds --as PROFILE ring check -o text"


def checks(mcds):
    done = subprocess.run([mcds, "doctor", "--checks"], check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def table(mcds):
    parts, about = [BEGIN], None
    for check in checks(mcds):
        if check["about"] != about:
            parts.append(("" if about is None else ".El\n") + f".Ss About {check['about']}\n.Bl -tag -width Ds -compact\n")
            about = check["about"]
        needs = f" ; needs {check['needs']}" if check["needs"] else ""
        words = [re.sub(r"\. (?=[A-Z])", ".\n", check["message"])]
        words += ["Do this: " + check["advice"]] if check["advice"] != OF_THE_RING else []
        parts.append(f".It Li {check['check']} Pq {check['severity']}{needs}\n".replace(" --", " \\-\\-")
                     + ".br\n".join(word.replace("\\", "\\e").replace("--", "\\-\\-") + "\n" for word in words))
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
