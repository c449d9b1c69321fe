#!/usr/bin/env python3
"""`meson install` puts everything in its place, under --prefix and DESTDIR, and packages of the same files are the same bytes.
Usage: install_test.py BUILD_DIR"""
import glob
import json
import os
import re
import shutil
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


def packages(prefix, directory, mode, kinds=("deb", "archive"), **environment):
    """The packages made of a copy of what is below `prefix`, by name, with the umask that leaves files that `mode`."""
    tree = f"{directory}/prefix"
    shutil.copytree(prefix, tree, copy_function=shutil.copy)  # with the time of now
    for path in glob.glob(f"{tree}/share/**/*.[157]", recursive=True):
        os.chmod(path, mode)
    for kind in kinds:
        done = subprocess.run(["tools/packaging/pack", kind, tree, directory], check=False, capture_output=True, text=True,
                              umask=0o666 & ~mode, env={**os.environ, **environment})
        check(done.returncode == 0, f"pack {kind}: {done.stdout}{done.stderr}")
    return {os.path.basename(path): contents(path) for path in glob.glob(f"{directory}/*") if os.path.isfile(path)}


def contents(path):
    with open(path, "rb") as file:
        return file.read()


def same_bytes(prefix, directory):
    here = packages(prefix, f"{directory}/here", 0o600, TZ="Asia/Kolkata")
    there = packages(prefix, f"{directory}/over/there", 0o666, LC_ALL="tr_TR.UTF-8", TAR_OPTIONS="--mode=600")
    named = sorted(re.sub(r"_[0-9].*_.*|-[0-9].*-linux-.*", "", name) for name in here)
    check(named == ["mcds", "mcds-memcached"], f"the packages are named {sorted(here)}")
    for name, content in here.items():
        check(content == there.get(name), f"{name} differs by where and when it was made")
    later = packages(prefix, f"{directory}/later", 0o644, ["archive"], SOURCE_DATE_EPOCH="1600000000")
    check(all(content != here[name] for name, content in later.items()), "SOURCE_DATE_EPOCH does nothing")


def commit(directory, **environment):
    done = subprocess.run([f"{directory}/tools/packaging/commit"], check=True, capture_output=True, text=True, env={**os.environ, **environment})
    return done.stdout.split()


def commit_is_told(directory):
    """By git, whoever owns the tree; by what `git archive` made; never of a repository around it."""
    if not os.path.exists(".git"):
        return
    told = commit(".")
    check(re.fullmatch("[0-9a-f]{12,}[+]?", told[0]), f"the commit is {told}")
    check(commit(".", GIT_TEST_ASSUME_DIFFERENT_OWNER="1") == told, "git does not trust the owner")
    archived, around = f"{directory}/archived", f"{directory}/around/tree"
    for tree, command in ((archived, "git archive HEAD"), (around, "git ls-files -z tools/packaging man | tar --null -T - -c")):
        os.makedirs(tree)
        subprocess.run(f"{command} | tar -x -C {tree}", shell=True, check=True)
    check(commit(archived) == [told[0].rstrip("+"), told[1]], f"git archive's tree says {commit(archived)}, not {told}")
    subprocess.run("git init -q .. && git -c user.name=x -c user.email=x@example.invalid commit -q --allow-empty -m other",
                   shell=True, check=True, cwd=around)
    unknown = commit(around)
    check(unknown[0] == "-" and int(unknown[1]) % 86400 == 0, f"without git it says {unknown}")


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
        same_bytes(f"{directory}/destdir/usr/local", directory)
        commit_is_told(directory)
    finish()


if __name__ == "__main__":
    main()
