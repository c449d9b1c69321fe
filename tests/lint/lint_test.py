#!/usr/bin/env python3
"""clang reads the whole program, and clang-tidy has nothing to say (.clang-tidy). Usage: lint_test.py BUILD_DIR"""
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

TIDY = "clang-tidy-19"


def lint(build, path):
    # The precompiled header is g++'s: clang reads its source. Nor does it know all of g++'s warnings. What shadows is found by
    # g++: clang also means names of another file that is compiled beside.
    extra = ["--extra-arg=-Wno-shadow", "--extra-arg=-I" + os.path.abspath("common/pch"), "--extra-arg=-Wno-unknown-warning-option"]
    done = subprocess.run([TIDY, "-p", build, "--quiet", *extra, path], check=False, capture_output=True, text=True)
    return path, done.returncode, done.stdout + done.stderr


def main():
    build = os.path.abspath(sys.argv[1])
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    # As they are compiled: several files at a time, which the sources' own names would not be found by.
    together = sorted(glob.glob(f"{build}/common/*.p/*-unity*.cpp") + glob.glob(f"{build}/tools/*.p/*-unity*.cpp"))
    alone = ["tools/main.cpp", "tools/cli/version.cpp"]
    sources = together + alone
    told = "".join(open(source, encoding="utf-8").read() for source in together)
    missing = [path for path in glob.glob("common/**/*.cpp", recursive=True) + glob.glob("tools/**/*.cpp", recursive=True)
               if f"/{path}>" not in told and path not in alone]
    check(not missing, f"not compiled: {missing}")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, status, output in pool.map(lambda source: lint(build, source), sources):
            found = re.findall(r"^\S+: (?:error|warning): .*", output, re.M)
            check(status == 0 and not found, f"{path}: {'; '.join(found) or output.strip()[-300:]}")
    finish()


if __name__ == "__main__":
    main()
