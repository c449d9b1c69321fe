#!/usr/bin/env python3
"""Runs the suites of a build directory and adds up their cases. Usage: run_suites.py [--targets] BUILD_DIR [SUITE…]

A suite is a doctest program in BUILD_DIR/tests or a script that ends with a line `N passed, N failed`. Output is shown
for suites that fail. MCDS_TEST_JOBS sets how many of those that compute run at a time, beside one more of those that wait for
servers and for time; when all that compute are done, as many more of the others. MCDS_TEST_SUITE_SECONDS how long one may take.
What a suite started and left behind is ended with it. Suites whose machine lacks what they need are named once, as one failure.
MCDS_TEST_SEED chooses the random numbers: the same in each short run, others in each full one. --targets prints what ninja must build for them instead.
Suite lint, which takes minutes of the processor, runs where it is named and in full runs.
With MCDS_TEST_FULL=1 all that take an amount from the environment get a larger one, and the suites full/… run too: those
of FULL, and every script tests/*/*_full.py.
"""
import collections
import ctypes
import glob
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time

FULL = os.environ.get("MCDS_TEST_FULL", "") not in ("", "0")
SUITE_TIMEOUT = int(os.environ.get("MCDS_TEST_SUITE_SECONDS", 6 * 3600 if FULL else 900))
SHORT_RUN_SEED = "26"
# These begin first: they take longest, and cannot be divided.
LONGEST = ("full", "lint", "cli", "interop/placement", "interop/mixed", "integration/item_save", "integration/signals", "integration/copies")
COMPUTING = {"simulation", "exhaustive", "unit", "contract", "fuzz", "lint", "full"}
FULL_AMOUNTS = {"MCDS_TEST_SCHEDULES": "400000", "MCDS_TEST_SECONDS": "120", "MCDS_TEST_LOCK_SECONDS": "60",
                "MCDS_TEST_EVENTS": "1000", "MCDS_TEST_ROUNDS": "5000", "MCDS_TEST_INCREMENTS": "2000"}
FULL_SUITES = {"full/interop": ["tests/interop/run"], "full/bench": ["tests/bench/run", "--quick"], "full/fuzz": ["tests/fuzz/run", "600"],
               "full/sanitize": ["tests/sanitize/run"]}
# Names of this machine are looked up by them.
NEED_LOCALHOST = {"integration/access", "integration/servers_from", "integration/one_server_twice", "doctor/doctor",
                  "libmemcached/configured", "interop/placement"}


def suites(build):
    tests = os.path.join(build, "tests")
    mcds = os.path.join(build, "tools", "mcds")
    # The longest first, one source at a time, so that they share the cores.
    for source in sorted(glob.glob("tests/simulation/*.cpp")):
        name = os.path.basename(source)
        yield f"simulation/{name.removesuffix('.cpp').removesuffix('_simulation')}", [os.path.join(tests, "simulation"), f"-sf=*/{name}"]
    for source in sorted(glob.glob("tests/exhaustive/*.cpp")):
        name = os.path.basename(source)
        yield f"exhaustive/{name.removesuffix('.cpp').removesuffix('_exhaustive')}", [os.path.join(tests, "exhaustive"), f"-sf=*/{name}"]
    for name in ("fault", "integration", "contract", "unit"):
        yield name, [os.path.join(tests, name)]
    goldens = sorted(glob.glob("tests/cli/*.golden"))
    yield "cli", ["python3", "tests/cli/run_golden.py", mcds, *goldens]
    for script in sorted(glob.glob("tests/*/*_test.py")):
        yield script.removeprefix("tests/").removesuffix("_test.py"), ["python3", script, build]
    if FULL:
        yield from FULL_SUITES.items()
        for script in sorted(glob.glob("tests/*/*_full.py")):
            yield "full/" + os.path.basename(script).removesuffix("_full.py"), ["python3", script, build]


def counts(output):
    return [tuple(map(int, found)) for found in re.findall(r"^(\d+) passed, (\d+) failed", output, re.M)]


def count(output):
    plain = counts(output)
    if plain:
        return plain[-1]
    doctest = re.findall(r"test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed", output)
    return tuple(map(int, doctest[-1])) if doctest else (0, 0)


def default_signals():
    """In the background of a script, or under nohup, they are ignored, and stay so for all that a test starts."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def environment_of(name):
    """A short run draws the same numbers each time: one that turns red by chance says nothing of the change. Simulations
    count their seeds themselves. With sanitizers the amounts of a short run take as long as those of a full one without."""
    if name == "full/sanitize":
        return {variable: value for variable, value in os.environ.items() if variable != "MCDS_TEST_FULL" and variable not in FULL_AMOUNTS}
    if FULL or name.startswith("simulation/"):
        return None
    return {"MCDS_TEST_SEED": SHORT_RUN_SEED, **os.environ}


def processes_below(parent):
    """The ids of all processes that descend from it, the youngest generation last."""
    children = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                number, _, rest = file.read().partition(" ")
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(rest.rpartition(")")[2].split()[1]), []).append(int(number))
    found = list(children.get(parent, []))
    for number in found:
        found += children.get(number, [])
    return found


def end_what_is_left():
    """Ends every process below this one, those too that began a session of their own; returns how many there were."""
    ended = 0
    while left := processes_below(os.getpid()):
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
                ended += 1
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass
        except ChildProcessError:
            pass
        time.sleep(0.01)
    return ended


def supervise(seconds, command):
    """Runs one suite and ends with it whatever it started: orphans become children of this process."""
    set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(end_what_is_left() or 1))
    process = subprocess.Popen(command, preexec_fn=default_signals)
    deadline = time.monotonic() + seconds
    status, said = 1, f"no end in {seconds} s"
    while time.monotonic() < deadline:
        # Orphans are reaped, too: what waits for one of them to be gone would wait for ever.
        ended, how = os.waitpid(-1, os.WNOHANG)
        if ended == process.pid:
            status = os.waitstatus_to_exitcode(how)
            said = f"ended by signal {-status}" if status < 0 else ""
            break
        if ended == 0:
            time.sleep(0.02)
    if end_what_is_left() and status != 0:
        said += "; what it left running was ended"
    if said:
        print(f"\n{said}", flush=True)
    sys.exit(status != 0)


def run(suite):
    name, command = suite
    started = time.monotonic()
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--supervise", str(SUITE_TIMEOUT), *command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, env=environment_of(name))
    status, output = done.returncode, done.stdout.decode("utf-8", "backslashreplace")
    passed, failed = count(output)
    if name.startswith("full/"):  # several scripts in one, or one that counts nothing
        passed, failed = (sum(column) for column in zip((0, 0), *counts(output)))
        passed += status == 0 and passed + failed == 0
    if (status != 0 and failed == 0) or passed + failed == 0:
        failed += 1
    return name, passed, failed, time.monotonic() - started, output


def has_localhost():
    try:
        return bool(socket.getaddrinfo("localhost", None))
    except OSError:
        return False


def targets(build, chosen):
    programs = {command[0] for _, command in chosen if command[0].startswith(build + os.sep)}
    return [os.path.relpath(program, build) for program in sorted(programs)] + ["tools/mcds"]


def work(queues, done):
    """Runs the suites of each queue in turn; one that cannot be run has failed."""
    for left in queues:
        while left:
            try:
                suite = left.popleft()
            except IndexError:  # another took the last one
                break
            try:
                done.put(run(suite))
            except OSError as error:
                done.put((suite[0], 0, 1, 0.0, str(error)))


def main():
    if sys.argv[1:2] == ["--supervise"]:
        supervise(float(sys.argv[2]), sys.argv[3:])
    arguments = [word for word in sys.argv[1:] if word != "--targets"]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    build, wanted = arguments[0], arguments[1:]
    by_name = set() if FULL else {"lint/lint"}
    chosen = [suite for suite in suites(build)
              if {suite[0], suite[0].split("/")[0]} & set(wanted) or not wanted and suite[0] not in by_name]
    unknown = set(wanted) - {word for name, _ in chosen for word in (name, name.split("/")[0])}
    if unknown:
        sys.exit(f"no such suite: {' '.join(sorted(unknown))}")
    if "--targets" in sys.argv[1:]:
        print(*targets(build, chosen))
        return
    os.environ["XDG_CONFIG_HOME"] = os.path.abspath("tests/support/patient")  # servers on a busy machine have time to answer
    for variable, amount in FULL_AMOUNTS.items() if FULL else ():
        os.environ.setdefault(variable, amount)
    total = failures = 0
    lacking = sorted(name for name, _ in chosen if name in NEED_LOCALHOST) if not has_localhost() else []
    if lacking:
        print(f"localhost does not resolve on this machine (see /etc/hosts): not run: {' '.join(lacking)}", flush=True)
        chosen = [suite for suite in chosen if suite[0] not in lacking]
        failures += 1
    jobs = int(os.environ.get("MCDS_TEST_JOBS", "2"))
    chosen.sort(key=lambda suite: not suite[0].startswith(LONGEST))
    computing = collections.deque(suite for suite in chosen if suite[0].split("/")[0] in COMPUTING)
    waiting = collections.deque(suite for suite in chosen if suite not in computing)
    done = queue.Queue()
    for own in [(computing, waiting)] * jobs + [(waiting,)] * (jobs + 1):
        threading.Thread(target=work, args=(own, done), daemon=True).start()
    for _ in chosen:
        name, passed, failed, seconds, output = done.get()
        if failed:
            print(output)
        print(f"{name:24} {passed:6} passed {failed:4} failed  {seconds:6.1f} s", flush=True)
        total += passed
        failures += failed
    print(f"{total} passed, {failures} failed")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
