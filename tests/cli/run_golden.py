#!/usr/bin/env python3
"""Runs golden files: exact command, exact JSON, exit code, stderr empty unless expected.

Usage: run_golden.py [--update] MCDS_BINARY FILE.golden…

--update: where something else is printed than expected, shows the difference and writes it into the file. Lines that
still match stay as they are, with their wildcards, and so do the wildcards of fields in lines that do not; times become
<time>.

Each file gets a fresh directory as its working directory and three real memcached servers on unix sockets,
named m1, m2 and m3 in $MCDS_SERVERS, so that keys are placed alike in every run. The directory's name is
shown as $DIR. $PID1..$PID3 are the servers' process ids. Format:

    $ command line, run by sh -c      > (a line starting with '> ' continues it)
    expected stdout line
    ! expected stderr line
    ? exit code (0 when absent)

<any> <time> <hex16> <n> <b64> in an expected line stand for any text, an RFC 3339 time, 16 hex digits, a number, base64.
"""
import difflib
import os
import re
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(FOLDER, "../support"))
from real_servers import Servers

PATIENT = os.path.join(FOLDER, "../support/patient")
WILDCARDS = {
    "<any>": r".*?",
    "<time>": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
    "<hex16>": r"[0-9a-f]{16}",
    "<n>": r"-?\d+(?:\.\d+)?",
    "<b64>": r"[A-Za-z0-9+/=]*",
}


def matches(expected, actual):
    pattern = "".join(WILDCARDS.get(p, re.escape(p)) for p in re.split(r"(<any>|<time>|<hex16>|<n>|<b64>)", expected))
    return re.fullmatch(pattern, actual, re.S) is not None


class Case:
    def __init__(self, line_number, command):
        self.line_number = line_number
        self.first_line = self.last_line = line_number  # of what is expected: behind these; none: they are equal
        self.command = command
        self.stdout = []
        self.stderr = []
        self.status = 0


def parse(path):
    cases = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if line.startswith("$ "):
                cases.append(Case(number, line[2:]))
            elif line.startswith("#") or not line and not cases:
                continue
            elif not cases:
                sys.exit(f"{path}:{number}: text before the first command")
            elif line.startswith("> "):
                cases[-1].command += "\n" + line[2:]
                cases[-1].first_line = cases[-1].last_line = number
            elif line:
                cases[-1].last_line = number
                if line.startswith("! "):
                    cases[-1].stderr.append(line[2:])
                elif line.startswith("? "):
                    cases[-1].status = int(line[2:])
                else:
                    cases[-1].stdout.append(line)
    return cases


def lines(data, directory):
    text = data.decode("utf-8", "backslashreplace").replace(directory, "$DIR")
    return text.split("\n")[:-1] if text.endswith("\n") else (text.split("\n") if text else [])


def same(expected, actual):
    return len(expected) == len(actual) and all(map(matches, expected, actual))


FIELD = re.compile(r'"(\w+)":("(?:[^"\\]|\\.)*"|\[[^][{}]*\]|[^][{},"]+)')


def with_wildcards(line, expected):
    """The line, with the wildcards that fields of the same name have in the expected line most like it."""
    old = FIELD.findall(max(expected, key=lambda one: len(set(FIELD.findall(one)) & set(FIELD.findall(line))), default=""))

    def field(found):
        value = next((value for name, value in old if name == found[1] and matches(value, found[2])), found[2])
        return f'"{found[1]}":{value}'
    return re.sub(WILDCARDS["<time>"], "<time>", FIELD.sub(field, line))


def merged(expected, actual):
    """What was printed, with the expected lines, and their wildcards, where they match it."""
    result = []
    for line in actual:
        found = next((i for i, old in enumerate(expected) if matches(old, line)), None)
        if found is None:
            result.append(with_wildcards(line, expected))
        else:
            result.append(expected[found])
            expected = expected[found + 1:]
    return result


class Update:
    """New expectations of a file's cases."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as file:
            self.before = file.read().splitlines(keepends=True)
        self.blocks = []
        self.failed = 0

    def add(self, case, stdout, stderr, status):
        stdout, stderr = merged(case.stdout, stdout), merged(case.stderr, stderr)
        if not isinstance(status, int) or any(not line or line.startswith(("$ ", "> ", "! ", "? ", "#")) for line in stdout):
            print(f"{self.path}:{case.line_number}: a golden file cannot say what this printed")
            self.failed += 1
            return
        block = [*stdout, *(f"! {line}" for line in stderr), *([f"? {status}"] if status != 0 else [])]
        self.blocks.append((case.first_line, case.last_line, [f"{line}\n" for line in block]))

    def write(self):
        after = list(self.before)
        for first, last, block in reversed(self.blocks):
            after[first:last] = block
        print("".join(difflib.unified_diff(self.before, after, self.path, self.path)), end="")
        if after != self.before:
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(after)


def run_file(binary, path, update=None):
    cases = parse(path)
    failed = 0
    with Servers(["m1.sock", "m2.sock", "m3.sock"], "-m", "64") as servers:
        directory, work = servers.directory, os.path.join(servers.directory, "cwd")
        os.mkdir(work)
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("MCDS_", "MEMCACHED_", "XDG_", "COLUMNS", "NO_COLOR"))}
        environment.update(
            PATH=f"{os.path.dirname(os.path.abspath(binary))}:{environment['PATH']}", HOME=work, LC_ALL="C.UTF-8", XDG_CONFIG_HOME=PATIENT,
            MCDS_SERVERS=",".join(f"m{i}=unix:{server}" for i, server in enumerate(servers.paths, 1)), DIR=directory,
            **{f"PID{i}": str(server.pid) for i, server in enumerate(servers.processes, 1)})
        for case in cases:
            try:
                done = subprocess.run(["sh", "-c", case.command], cwd=work, env=environment, timeout=60,
                                      stdin=subprocess.DEVNULL, capture_output=True)
                status, stdout, stderr = done.returncode, lines(done.stdout, directory), lines(done.stderr, directory)
            except subprocess.TimeoutExpired:
                status, stdout, stderr = "none within 60 s", [], []
            if status == case.status and same(case.stdout, stdout) and same(case.stderr, stderr):
                continue
            if update is not None:
                update.add(case, stdout, stderr, status)
                continue
            failed += 1
            print(f"{path}:{case.line_number}: $ {case.command}")
            for title, want, got in (("stdout", case.stdout, stdout), ("stderr", case.stderr, stderr)):
                if not same(want, got):
                    print(f"  {title} expected:", *want, sep="\n    ")
                    print(f"  {title} got:", *got, sep="\n    ")
            if status != case.status:
                print(f"  exit code expected {case.status}, got {status}")
    return len(cases), failed


def main():
    arguments = sys.argv[1:]
    updates = arguments[0] == "--update"
    binary, *paths = arguments[updates:]
    total = failures = 0
    for path in paths:
        update = Update(path) if updates else None
        count, failed = run_file(binary, path, update)
        if updates:
            update.write()
            failed = update.failed
        total += count
        failures += failed
    print(f"{total - failures} passed, {failures} failed")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
