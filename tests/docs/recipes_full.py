#!/usr/bin/env python3
"""common/README.md, "How to add something", followed to the letter in a copy of the tree: a verb, a field and a profile. What is
left out at a step, the suites that it names say; with all steps they pass. Usage: recipes_full.py BUILD_DIR

Builds the program and the unit tests once and changes some files of it six times: ten minutes, half an hour on a busy machine.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
sys.path.insert(0, os.path.join(HERE, "../tidy"))
import tidy_test
from checks import check, finish

SUITES = ("unit", "cli", "docs", "tidy")  # those that the recipes name
MCDS = "build/tools/mcds"
VERB = """
  command.verb("shout", "print a name loudly")
      .example("mcds table shout blocked --loudly")
      .answer("table found")
      .argument("NAME", "the table", &options->name)
      .flag("--loudly", "as loudly as can be", options->json)
      .action([options](Session& session) {
        session.output().answer(JsonObject("table", options->name).boolean("found", options->json), "");
        return ExitStatus::ok;
      });
"""
SECTION = """.Sh SHOUT
With
.Fl -loudly ,
the field
.Li found
is true.
"""
CASE = """
$ mcds table shout blocked --loudly
{"table":"blocked","found":true}
"""
FIELD = ("tools/commands/counter.cpp", r'(\.boolean\("created", answer\.created\))', r'\1.number("loudness", 11)')
ANSWER = ("tools/commands/counter.cpp", r'("counter value value_str\? delta created) ', r"\1 loudness ")
MEANING = ("tools/cli/field_dictionary.cpp", r"(?m)^(lost string)", "loudness integer how loud it was\n\\1")
PROFILE = ("common/placement/profiles/scripting.cpp", r'(?m)^( *\{"uhashring-ketama", )',
           '    {"uhashring-of-the-recipe", &uhashring, "a recipe", uhashring_ketama()},\n\\1')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def change(path, pattern, new):
    text = read(path)
    changed = re.sub(pattern, new, text, count=1)
    check(changed != text, f"{path}: no place for {new!r}; the recipe's test is to follow the tree")
    with open(path, "w", encoding="utf-8") as file:
        file.write(changed)


def run(*command):
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def build():
    done = run("ninja", "-C", "build", "tools/mcds", "tests/unit")
    if done.returncode != 0:
        sys.exit(f"the copy is not built: {done.stdout[-3000:]}")


def suites(*wanted):
    done = run("python3", "tests/run_suites.py", "build", *(wanted or SUITES))
    return done.returncode, done.stdout


def named(step, suite, *words):
    """Without the step this suite fails, and says what is missing."""
    status, said = suites(suite)
    check(status == 1 and all(word in said for word in words), f"without {step}: {suite} does not name {words}: {said[-1500:]}")


def passes():
    status, said = suites()
    check(status == 0, f"with all steps: {said[-3000:]}")


def add_verb():
    path = "tools/commands/elements/table.cpp"
    declared = VERB.replace('      .example("mcds table shout blocked --loudly")\n', "")
    change(path, r"(  const auto options = std::make_shared<ElementsOptions>.*\n)", lambda found: found[1] + declared.lstrip("\n"))
    build()
    named("an example", "docs/docs", "mcds table shout: no example")
    named("a golden case", "docs/docs", "no golden case of mcds table shout")
    change(path, re.escape(declared.lstrip("\n")), lambda _: VERB.lstrip("\n"))
    build()
    change("man/mcds-table.1", r"(?m)^(\.Sh COUNT, CHECK\n)", lambda found: SECTION + found[1])
    named("its lines in SYNOPSIS and OPTIONS", "docs/docs", "man/mcds-table.1: differs")
    run("python3", "tests/docs/docs_test.py", "build", "--update")
    with open("tests/cli/table.golden", "a", encoding="utf-8") as file:
        file.write(CASE.replace("true", "false"))
    named("the right answer", "cli", "shout")
    change("tests/cli/table.golden", r'"found":false\}\n\Z', '"found":true}\n')
    named("its columns", "cli", "not in VERBS", "table shout")
    change("tests/cli/columns_test.py", r'("table drop none": )', r'"table shout t": "table found", \1')


def add_field():
    change(*FIELD)
    build()
    named("the golden files", "cli", "loudness")
    shown = [path for path in glob.glob("tests/cli/*.golden") if re.search(r'"delta"|delta  ', read(path))]
    run("python3", "tests/cli/run_golden.py", "--update", MCDS, *shown)
    change("tests/cli/text.golden", r"m\d( +)m\d value 1; m\d value 1", r"m<n>\1m<n> value 1; m<n> value 1")
    named("the verb's answer", "docs/docs", "declare no such answer", "loudness")
    change(*ANSWER)
    build()
    named("the dictionary", "docs/docs", "loudness", "dictionary")
    change(*MEANING)
    build()
    named("the page", "docs/docs", "man/mcds-counter.1: differs")
    run("python3", "tests/docs/docs_test.py", "build", "--update")


def add_profile():
    change(*PROFILE)
    build()
    named("the vectors", "unit", "uhashring-of-the-recipe")
    lines = re.findall(r"(?m)^uhashring-ketama (.*)\n", read("tests/vectors/profiles.txt"))
    with open("tests/vectors/profiles.txt", "a", encoding="utf-8") as file:
        file.writelines(f"uhashring-of-the-recipe {line}\n" for line in lines)


def main():
    files = tidy_test.tracked()
    with tempfile.TemporaryDirectory() as copy:
        for path in files:
            os.makedirs(os.path.join(copy, os.path.dirname(path)), exist_ok=True)
            shutil.copy2(path, os.path.join(copy, path), follow_symlinks=False)
        os.chdir(copy)
        done = run("meson", "setup", "build", "-Dtests=true", "-Dwerror=true", "-Doptimization=0")
        check(done.returncode == 0, done.stdout)
        build()
        add_verb()
        add_field()
        add_profile()
        passes()
        os.chdir("/")
    finish()


if __name__ == "__main__":
    os.chdir(os.path.join(HERE, "../.."))
    os.environ.pop("MCDS_TEST_FULL", None)
    main()
