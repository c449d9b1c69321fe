#!/usr/bin/env python3
"""tools/package makes the same bytes in two places: in a clone, and in what `git archive` made, which has no data of git.
Usage: same_bytes_full.py BUILD_DIR"""
import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish


def packages(directory, mask, **environment):
    for option in ([], ["--static"]):
        done = subprocess.run(["tools/package", *option], cwd=directory, check=False, capture_output=True, text=True, umask=mask,
                              env={**os.environ, **environment})
        check(done.returncode == 0, f"tools/package {option}: {done.stdout}{done.stderr}")
    sums = subprocess.run(["sha256sum", *map(os.path.basename, sorted(glob.glob(f"{directory}/build-package/mcds*")))],
                          cwd=f"{directory}/build-package", check=True, capture_output=True, text=True)
    said = [subprocess.run([f"{directory}/build-package/{kind}/tools/mcds", "--version"], check=True, capture_output=True, text=True).stdout
            for kind in ("deb", "archive")]
    return sums.stdout + "".join(said)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    with tempfile.TemporaryDirectory(prefix="mcds-package-") as directory:
        clone, archived = f"{directory}/clone", f"{directory}/somewhere/else/archived"
        os.makedirs(archived)
        subprocess.run(f"git clone -q . {clone} && git archive HEAD | tar -x -C {archived}", shell=True, check=True)
        made = packages(clone, 0o022, TZ="UTC")
        check(made.count("\n") == 4 and made.count("(commit ") == 2, f"made: {made}")
        again = packages(archived, 0o077, TZ="Asia/Kolkata", LC_ALL="C.UTF-8")
        check(made == again, f"in a clone:\n{made}without git:\n{again}")
        print(made)
    finish()


if __name__ == "__main__":
    main()
