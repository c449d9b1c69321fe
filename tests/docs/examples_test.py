#!/usr/bin/env python3
"""Runs every example of the README, of --help and of the man pages, in a private network with servers at 10.0.0.1 to 10.0.0.4,
and compares the output with the text. Times, tokens, ids and measurements are not compared.

Usage: examples_test.py BUILD_DIR [--update]

--update writes the output of README.md's examples into README.md, and README.md's picture into tests/docs/ring.svg. Output that
the text shortens with … stays as it is.
"""
import contextlib
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import private_network
from checks import check, finish
from real_servers import end, start_at

ADDRESSES = [f"10.0.0.{number}" for number in range(1, 5)]
POOL = "10.0.0.1,10.0.0.2,10.0.0.3"
PICTURE = "tests/docs/ring.svg"
# Fields that differ from run to run.
VARYING = {"token", "expires_at", "at", "id", "first_id", "last_id", "host", "user", "pid", "fence", "rtt_us", "version",
           "acquired_at", "period_started_at", "uptime_s", "used_bytes", "from", "to_at", "retry_after_s"}
# Commands that wait for something, or have no end: for so long.
ENDLESS = re.compile(r"tail .*(-f|--follow)|tail -F|item hot|hash watch|sandbox$|sandbox -N 5$")
STUBS = ("send-mail", "mail", "process", "backup.sh", "make-report", "mail-them", "deploy", "query", "render", "quote", "report",
         "forecast", "send-report", "encode", "make", "my-test.sh", "curl", "rsync", "ipset", "ssh",
         "systemctl")
STORE_TWICE = r"""for n in 1 2; do exec 3<>/dev/tcp/10.0.0.$n/11211; printf 'set price:44 0 0 1\r\n%s\r\nquit\r\n' $n >&3; cat <&3; done"""
# What an example takes for granted, by a part of its command line.
SAVED_BY = r"""seq {} | awk '{{printf "add page:%s 0 0 5\r\nhello\r\n", $1}}' | mcds --as {} item load -"""
BEFORE = {
    "where --probe --live --as symfony": [SAVED_BY.format("600", "php-memcached"), SAVED_BY.format("601 1000", "symfony")],
    "where --probe price:44 -o value": [STORE_TWICE],
}
# What else varies in the answers to some questions: what they measure or depend upon.
ALSO_VARYING = {
    "visitors value": {"value", "current", "server"},
    "where --guess": {"profile", "agreement", "explained", "keys", "told_apart_after", "behind_after"},
}


def stub_directory(directory):
    for name in STUBS:
        for path in (os.path.join(directory, "bin", name), os.path.join(directory, name), os.path.join(directory, "tests", name)):
            if os.path.isdir(path):
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 0\n")
            os.chmod(path, 0o755)
    os.symlink(mcds, os.path.join(directory, "bin", "mcds"))
    for name, text in (("access.log", "10.1.2.3 - GET /\n10.1.2.4 - GET /\n"), ("offenders", "10.9.9.9\tspam\n"), ("app.log", "one\n"),
                       ("prices.csv", "a,1\n"), ("query.json", "{\"id\":158}\n"), ("keys.txt", "a\nb\n"), ("keys", "a\nb\n")):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    for name in ("old.yml", "new.yml", "nutcracker.yml"):
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write("alpha:\n  listen: 127.0.0.1:22121\n  hash: fnv1a_64\n  distribution: ketama\n  servers:\n"
                       "   - 10.0.0.1:11211:1\n   - 10.0.0.2:11211:1\n")


def run(command, directory):
    """Exit code, what it printed, and what it said."""
    environment = {"PATH": os.path.join(directory, "bin") + ":/usr/bin:/bin", "HOME": directory, "MCDS_SERVERS": POOL, "LANG": "C.UTF-8",
                   "SHELL": "/bin/true", "IP": "10.1.2.3", "ARTICLE": "44", "SESSION": "s1", "token": "a000000000000000"}
    process = subprocess.Popen(["bash", "-c", command], cwd=directory, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, said = process.communicate(timeout=1.5 if ENDLESS.search(command) else 60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, said = process.communicate()
        return (0 if ENDLESS.search(command) else -1), out, said
    return process.returncode, out, said


def same_value(name, printed, got, varying):
    if name in varying or printed in ("...", "…"):
        return True
    if isinstance(printed, dict) and isinstance(got, dict):
        return list(printed) == list(got) and all(same_value(key, printed[key], got[key], varying) for key in printed)
    if isinstance(printed, list) and isinstance(got, list):
        return len(printed) == len(got) and all(same_value(name, one, other, varying) for one, other in zip(printed, got))
    if isinstance(printed, float) and isinstance(got, float):
        return abs(printed - got) < 0.06
    return printed == got


def same_line(printed, got, varying):
    if printed.rstrip() == got.rstrip():
        return True
    cut = re.sub(r",(…|\.\.\.)\}$", "}", printed)
    try:
        wanted, answer = json.loads(cut), json.loads(got)
    except ValueError:
        return False
    if cut != printed:
        answer = {key: answer[key] for key in list(answer)[:len(wanted)]}
    return same_value("", wanted, answer, varying)


def same_output(printed, got, varying):
    """`…` alone stands for any lines."""
    if not printed:
        return not got
    if printed[0] == "…":
        return any(same_output(printed[1:], got[start:], varying) for start in range(len(got) + 1))
    return bool(got) and same_line(printed[0], got[0], varying) and same_output(printed[1:], got[1:], varying)


def prepare_and_run(command, directory):
    for part, preparations in BEFORE.items():
        if part in command:
            for preparation in preparations:
                run(preparation, directory)
    return run(command.replace("/usr/local/bin/", ""), directory)


def varying_in(command):
    return VARYING.union(*(fields for part, fields in ALSO_VARYING.items() if part in command))


def try_example(where, command, printed, directory):
    status, out, said = prepare_and_run(command, directory)
    refused = '"code":"usage"' in said or '"code":"configuration"' in said or '"code":"internal"' in said
    check(not refused and status not in (-1, 64, 70, 78), f"{where}: {command}: ends with {status}: {said}")
    if printed:
        got = out.splitlines()
        check(same_output(printed, got, varying_in(command)), "\n  ".join([f"{where}: {command}: prints", *got, *said.splitlines(), "and the text shows", *printed]))


def readme_text():
    with open("README.md", encoding="utf-8") as file:
        return file.read()


def readme_examples():
    for block in re.findall(r"^```console\n(.*?)^```", readme_text(), re.M | re.S):
        yield from examples_of(block.splitlines())


def update_readme():
    """Replaces shown output that differs from what is printed, in the order in which it is shown."""
    text = readme_text()
    with tempfile.TemporaryDirectory() as directory, running_servers(directory):
        for command, printed in readme_examples():
            got = prepare_and_run(command, directory)[1].splitlines()
            if printed and "…" not in "".join(printed) and not same_output(printed, got, varying_in(command)):
                print(f"README.md: {command}: updated")
                assert text.count("\n".join(printed)) == 1, "this output is shown twice: change it by hand"
                text = text.replace("\n".join(printed), "\n".join(got))
    with open("README.md", "w", encoding="utf-8") as file:
        file.write(text)
    with open(PICTURE, "w", encoding="utf-8") as file:
        file.write(picture())


def picture():
    """All but the date."""
    drawn = subprocess.run([mcds, "-s", POOL, "ring", "--svg", "-"], check=True, capture_output=True, text=True).stdout
    return re.sub(r">\d{4}-\d\d-\d\d \d\d:\d\d UTC<", ">2026-11-21 08:30 UTC<", drawn)


def check_picture():
    check(PICTURE in readme_text(), f"README.md: does not show {PICTURE}")
    with open(PICTURE, encoding="utf-8") as file:
        check(file.read() == picture(), f"{PICTURE}: differs from what `mcds ring --svg` draws; tests/docs/examples_test.py BUILD_DIR --update")


def examples_of(lines):
    """`$ command`, then what it prints. What stands behind two blanks and # is said to people."""
    command, printed = None, []
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield command, printed
            command, printed = re.sub(r"\s{2,}#.*", "", line[2:]), []
        elif command:
            printed.append(line)
    if command:
        yield command, printed


def man_examples(page):
    text = subprocess.run(["mandoc", "-Tutf8", "-O", "width=400", page], check=True, capture_output=True, text=True).stdout
    text = re.sub(r".\x08", "", text)
    section = re.search(r"^EXAMPLES\n(.*?)^\S", text, re.M | re.S)
    # Displays are indented deeper than what is said between them.
    lines = [line.strip() if line.startswith(" " * 11) else "" for line in (section[1].splitlines() if section else [])]
    for display in "\n".join(lines).split("\n\n"):
        lines = display.strip().splitlines()
        if not lines or lines[0].startswith("$ "):
            yield from examples_of(lines)
        elif "mcds" in lines[0]:
            # A line of a crontab, or a script.
            yield re.sub(r"^(?:[\d*/,-]+\s+){5}", "", "\n".join(lines)), []


def help_examples():
    description = json.loads(subprocess.run([mcds, "__describe"], check=True, capture_output=True, text=True).stdout)
    for command in description["commands"]:
        for verb in command["verbs"]:
            for example in verb["examples"]:
                yield f"mcds {command['name']} {verb['name']} --help", example


@contextlib.contextmanager
def running_servers(directory):
    stub_directory(directory)
    servers = [start_at(address, 11211) for address in ADDRESSES[:3]]
    try:
        yield
    finally:
        end(*servers)


def try_all(examples):
    count = 0
    with tempfile.TemporaryDirectory() as directory, running_servers(directory):
        for where, command, printed in examples:
            if "mcds" in command:
                try_example(where, command, printed, directory)
                count += 1
    return count


def main():
    private_network.enter(mcds, *ADDRESSES)
    if "--update" in sys.argv:
        update_readme()
    check_picture()
    count = try_all([("README.md", *example) for example in readme_examples()])
    check(count > 15, f"README.md: only {count} examples")
    for page in sorted(glob.glob("man/*.[157]")):
        try_all([(page, *example) for example in man_examples(page)])
    count = try_all([(where, command, []) for where, command in help_examples()])
    check(count > 60, f"--help: only {count} examples")


if __name__ == "__main__":
    build = os.path.abspath(sys.argv[1])
    mcds = os.path.join(build, "tools", "mcds")
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    main()
    finish()
