#!/usr/bin/env python3
"""Every unit includes what it uses: all of them compile without precompiled headers. Usage: headers_full.py BUILD_DIR"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    with tempfile.TemporaryDirectory() as build:
        for command in (["meson", "setup", build, "-Dtests=true", "-Dwerror=true", "-Db_pch=false", "-Doptimization=0"],
                        ["ninja", "-C", build, "-k", "0"]):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            check(done.returncode == 0, f"{' '.join(command)}: {done.stdout[-3000:]}")
    finish()


if __name__ == "__main__":
    main()
