"""The program that is tested, the environment that it is run in, and what it says."""
import contextlib
import json
import os
import subprocess
import sys
import time

MCDS = os.path.join(os.path.abspath((sys.argv[1:] or ["build"])[0]), "tools", "mcds")  # of a test script, whose first word is its build
PATIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "patient")  # a configuration with long timeouts
LONGEST_S = 300  # of a program that does not end


def clean_environment(**more):
    """Nothing of the user's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MCDS_", "MEMCACHED_", "MEMCACHIER_", "XDG_"))}
    return {**kept, **more}


def environment(**more):
    """The same, and servers have time to answer, unless options say how much."""
    return clean_environment(**{"XDG_CONFIG_HOME": PATIENT, **more})


def run(servers, *words, **options):
    """Runs mcds on a list of servers, and waits for its end."""
    streams = {} if {"input", "stdin"} & set(options) else {"stdin": subprocess.DEVNULL}
    return subprocess.run([MCDS, "-s", servers, *words], **{"capture_output": True, "text": True, "check": False, "timeout": LONGEST_S,
                                                            "env": environment(), **streams, **options})


def answers(servers, *words, **options):
    """The exit code, the objects that it printed, and what it said on standard error."""
    done = run(servers, *words, **options)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done.stderr


def traced(words, *options):
    """Runs mcds under strace."""
    return subprocess.run(["strace", "-qq", *options, MCDS, *words], capture_output=True, text=True, check=False, timeout=LONGEST_S)


def wait_for(condition, what="", limit=60):
    """Returns what `condition` does once it is true; files and processes that it asks for may not be there yet."""
    deadline = time.monotonic() + limit
    while True:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if result := condition():
                return result
        assert time.monotonic() < deadline, f"{what or 'what is waited for'}: not within {limit} s"
        time.sleep(0.005)


def alive(pid):
    """Running: a process that has ended but whom nobody reaps does not count."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


class Workplace:
    """A folder where mcds and other programs run, each of which has ended when the block ends."""

    def __init__(self, directory, variables):
        self.directory, self.environment, self.started = directory, variables, []
        self.environment["PATH"] = f"{os.path.dirname(MCDS)}:{os.environ['PATH']}"

    def path(self, name):
        return os.path.join(self.directory, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def start(self, *words, **options):
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, **{"cwd": self.directory, "env": self.environment, **streams, **options})
        self.started.append(process)
        return process

    def run(self, *words):
        process = self.start(*words)
        output, errors = process.communicate(timeout=LONGEST_S)
        return process.returncode, output, errors

    def end(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
