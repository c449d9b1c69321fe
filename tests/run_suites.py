#!/usr/bin/env python3
"""Runs the suites of a build directory and adds up their cases. Usage: run_suites.py BUILD_DIR [SUITE…]

A suite is a doctest program in BUILD_DIR/tests or a script that ends with a line `N passed, N failed`. Output is shown
for suites that fail. MCDS_TEST_JOBS sets how many run at a time.
"""
import concurrent.futures
import glob
import os
import re
import signal
import subprocess
import sys
import time

SUITE_TIMEOUT = 900


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


def count(output):
    plain = re.findall(r"^(\d+) passed, (\d+) failed", output, re.M)
    if plain:
        return tuple(map(int, plain[-1]))
    doctest = re.findall(r"test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed", output)
    return tuple(map(int, doctest[-1])) if doctest else (0, 0)


def default_signals():
    """In the background of a script, or under nohup, they are ignored, and stay so for all that a test starts."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def run(suite):
    name, command = suite
    started = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=SUITE_TIMEOUT, check=False, preexec_fn=default_signals)
        status, output = done.returncode, done.stdout.decode("utf-8", "backslashreplace")
    except subprocess.TimeoutExpired as error:
        status, output = 1, (error.output or b"").decode("utf-8", "backslashreplace") + f"\nno end in {SUITE_TIMEOUT} s"
    passed, failed = count(output)
    if (status != 0 and failed == 0) or passed + failed == 0:
        failed += 1
    return name, passed, failed, time.monotonic() - started, output


def main():
    build, wanted = sys.argv[1], sys.argv[2:]
    chosen = [suite for suite in suites(build) if not wanted or {suite[0], suite[0].split("/")[0]} & set(wanted)]
    unknown = set(wanted) - {word for name, _ in chosen for word in (name, name.split("/")[0])}
    if unknown:
        sys.exit(f"no such suite: {' '.join(sorted(unknown))}")
    total = failures = 0
    jobs = int(os.environ.get("MCDS_TEST_JOBS", "2"))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, suite) for suite in chosen]):
            name, passed, failed, seconds, output = done.result()
            if failed:
                print(output)
            print(f"{name:24} {passed:6} passed {failed:4} failed  {seconds:6.1f} s", flush=True)
            total += passed
            failures += failed
    print(f"{total} passed, {failures} failed")
    sys.exit(failures != 0)


if __name__ == "__main__":
    main()
