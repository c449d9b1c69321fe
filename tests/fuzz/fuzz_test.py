#!/usr/bin/env python3
"""The fuzz targets, fed their corpora and mutations of them: those of BUILD_DIR's libraries, or, in full runs, with all that they
need compiled under AddressSanitizer and UndefinedBehaviorSanitizer, which takes minutes.

Usage: fuzz_test.py BUILD_DIR; MCDS_TEST_SEED chooses the mutations, MCDS_TEST_ROUNDS how many of each example (600). What
is built goes to build-fuzz/; tests/fuzz/run lets libFuzzer look for hours.
"""
import concurrent.futures
import glob
import itertools
import os
import random
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish

SEED = int(os.environ.get("MCDS_TEST_SEED", str(random.randrange(1 << 32))))
ROUNDS = os.environ.get("MCDS_TEST_ROUNDS", "600")
FOLDER = "build-fuzz/replay"
FLAGS = ["-std=c++20", "-O0", "-g1", "-I.", "-fpch-preprocess", "-D_GLIBCXX_ASSERTIONS",
         *(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if FULL else [])]
# ccache looks into a precompiled header only when told how much may differ.
os.environ["CCACHE_SLOPPINESS"] = "pch_defines,time_macros"
COMPILER = [*(["ccache"] if shutil.which("ccache") else []), "c++"]


def sources_of(target):
    """As its line `// sources:` says, and what must be linked."""
    with open(f"tests/fuzz/{target}_fuzz.cpp", encoding="utf-8") as file:
        words = re.search(r"^// sources: (.*)$", file.read(), re.M)[1].split()
    files = sorted({path for word in words if not word.startswith("-") for path in glob.glob(word)})
    return files, [word for word in words if word.startswith("-")]


def blocks_of(sources):
    """Files that include up to eight sources of one folder, which are compiled together everywhere: what they share is read once."""
    blocks = []
    for folder, group in itertools.groupby(sorted(sources, key=os.path.dirname), key=os.path.dirname):
        for number, paths in enumerate(iter(lambda group=group: list(itertools.islice(group, 8)), [])):
            blocks.append(os.path.join(FOLDER, f"{folder.replace('/', '_')}{number}.cpp"))
            with open(blocks[-1], "w", encoding="utf-8") as file:
                file.writelines(f'#include "{path}"\n' for path in paths)
    return blocks


def object_of(source):
    return os.path.join(FOLDER, os.path.basename(source).removesuffix(".cpp") + ".o")


def precompiled():
    """The standard headers, once for all sources: without, they are most of what is compiled."""
    header = os.path.join(FOLDER, "standard.hpp")
    shutil.copy("common/pch/standard.hpp", header)
    subprocess.run(["c++", *FLAGS, "-x", "c++-header", header, "-o", header + ".gch"], check=True)
    return ["-include", header]


def compiled(source, header):
    done = subprocess.run([*COMPILER, *FLAGS, *header, "-c", source, "-o", object_of(source)], capture_output=True, check=False)
    return done.returncode, f"{source}: {done.stderr.decode()[-3000:]}"


def main():
    print(f"MCDS_TEST_SEED={SEED}")
    os.makedirs(FOLDER, exist_ok=True)
    targets = sorted(os.path.basename(path).removesuffix("_fuzz.cpp") for path in glob.glob("tests/fuzz/*_fuzz.cpp"))
    of_targets = {target: sources_of(target) for target in targets}
    blocks = blocks_of({source for sources, _ in of_targets.values() for source in sources}) if FULL else []
    built = [] if FULL else [os.path.join(sys.argv[1], path) for path in ("tools/libmcds_cli.a", "common/libmcds.a", "tools/libmcds_version.a")]
    libraries = sorted({library for _, libraries in of_targets.values() for library in libraries})
    alone = [f"tests/fuzz/{target}_fuzz.cpp" for target in targets] + ["tests/fuzz/replay.cpp"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        header = precompiled()
        for status, said in pool.map(lambda source: compiled(source, header), alone + blocks):
            check(status == 0, said)
    for target in targets:
        program = os.path.join(FOLDER, target)
        objects = map(object_of, [f"tests/fuzz/{target}_fuzz.cpp", "tests/fuzz/replay.cpp", *blocks])
        linked = subprocess.run(["c++", *FLAGS, "-o", program, *objects, *built, *libraries], capture_output=True, check=False)
        check(linked.returncode == 0, f"{target}: {linked.stderr.decode()[-3000:]}")
        if linked.returncode != 0:
            continue
        corpus = sorted(glob.glob(f"tests/fuzz/{target}_corpus/*"))
        check(len(corpus) >= 10, f"{target} has {len(corpus)} examples")
        done = subprocess.run([program, str(SEED), ROUNDS, *corpus], capture_output=True, check=False)
        said = done.stdout.decode(errors="backslashreplace")
        print(f"{target}: {said.strip()}")
        check(done.returncode == 0 and said.endswith("inputs\n"), f"{target}: {done.returncode} {done.stderr.decode(errors='backslashreplace')[-4000:]}")
    finish()


if __name__ == "__main__":
    main()
