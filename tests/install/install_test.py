#!/usr/bin/env python3
"""`meson install` puts everything in its place, under --prefix and DESTDIR. Usage: install_test.py BUILD_DIR"""
import glob
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish


def expected(prefix):
    share = f"{prefix}/share"
    pages = [os.path.basename(page) for page in glob.glob("man/*.[157]")]
    yield f"{prefix}/bin/mcds"
    for page in pages:
        yield f"{share}/man/man{page[-1]}/{page}"
    yield f"{share}/bash-completion/completions/mcds"
    yield f"{share}/zsh/site-functions/_mcds"
    yield f"{share}/fish/vendor_completions.d/mcds.fish"


def installed_with_destdir(build, directory):
    """What `meson install` really copies, with the prefix the build has."""
    done = subprocess.run(["meson", "install", "-C", build, "--no-rebuild"], check=False, capture_output=True, text=True,
                          env={**os.environ, "DESTDIR": directory})
    check(done.returncode == 0, f"meson install: {done.stdout[-500:]}{done.stderr[-500:]}")
    version = subprocess.run([f"{directory}/usr/local/bin/mcds", "--version"], check=False, capture_output=True, text=True)
    check(version.stdout.startswith("mcds "), f"the installed binary says {version}")
    return {path.removeprefix(directory) for root, _, names in os.walk(directory) for path in (f"{root}/{n}" for n in names)}


def planned_for_prefix(prefix, directory):
    """Where a build configured for `prefix` would install to."""
    subprocess.run(["meson", "setup", directory, f"-Dprefix={prefix}"], check=True, capture_output=True)
    plan = subprocess.run(["meson", "introspect", "--installed", directory], check=True, capture_output=True, text=True)
    return set(json.loads(plan.stdout).values())


def main():
    build = os.path.abspath(sys.argv[1])
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    with tempfile.TemporaryDirectory(prefix="mcds-install-") as directory:
        for prefix, files in (("/usr/local", installed_with_destdir(build, f"{directory}/destdir")),
                              ("/opt/tools", planned_for_prefix("/opt/tools", f"{directory}/build"))):
            for path in expected(prefix):
                check(path in files, f"{prefix}: no {path}")
            stray = {path for path in files if not path.startswith(prefix + "/")}
            check(not stray, f"{prefix}: outside of it: {sorted(stray)}")
    finish()


if __name__ == "__main__":
    main()
