#!/usr/bin/env python3
"""Rules of the source tree that a compiler does not check. Usage: tidy_test.py [BUILD_DIR]"""
import fnmatch
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

# Imports only run downwards: a layer may include itself and what stands after it here.
COMMON_LAYERS = ["operations", "structures", "replication", "journal", "primitives", "cluster", "placement", "values", "base"]
# A room has a public header; the rest of it is private. What one room may include of another:
ROOMS = ("common/structures", "common/operations")
# Two kinds of one structure; a lock, and one of several; a cache's entries, and what they hold and depend on.
PUBLIC = {"cache": {"cache.hpp", "entry.hpp", "tags.hpp"}, "eventlog": {"eventlog.hpp", "event.hpp", "cursor.hpp"}, "elements": {"elements.hpp", "element.hpp", "table.hpp", "hash.hpp", "hash_watch.hpp"}, "lock": {"lock.hpp", "slots.hpp"},
          "doctor": {"checks.hpp", "examination.hpp", "gather.hpp", "live_keys.hpp"},
          "move": {"move.hpp", "move_journal.hpp", "server_starts.hpp"}}
ARROWS = {("array", "lock"), ("cache", "lock"), ("move", "array"), ("capacity", "doctor")}
CLANG_FORMAT = 14  # another version breaks some lines elsewhere
TOP_LEVEL = {"tools", "common", "tests", "completions", "man", "meson.build", "README.md", "meson_options.txt", "LICENSE"}
FORBIDDEN_IN_COMMON = {
    r"\bstd::c(?:out|err)\b|\bprintf\s*\(": "prints",
    r"(?<![\w.])_?exit\s*\(": "calls exit",
    r"_clock::now\s*\(|\bclock_gettime\s*\(|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)": "reads a clock",
    r"\bsleep_(?:for|until)\s*\(\s*std|\bu?sleep\s*\(|\bnanosleep\s*\(": "sleeps",
}
# Transports measure their own I/O deadlines; the clock's own source reads the clock.
CLOCK_EXCEPTIONS = ("common/base/clock.cpp", "common/cluster/wire/")
# The end of a child process is not that of the program.
EXIT_EXCEPTIONS = ("common/base/process.cpp", "common/cluster/keys/live.cpp",
                   "common/cluster/libmemcached/library.cpp")
# The library reads all JSON in one place, behind json_fault; as a tree, which rewrites numbers, only settings of other programs.
JSON_USERS = {"nlohmann/json.hpp": {"common/base/json_reader.cpp", "common/placement/mcrouter/json_tree.hpp"},
              "common/placement/mcrouter/json_tree.hpp": {"common/placement/mcrouter/config.cpp", "common/placement/mcrouter/json_tree.cpp",
                                                          "common/placement/pools/applications.cpp", "common/placement/pools/files.cpp"}}
# Comments use the field's terms and have a subject: tombstone, incarnation, repair, unknown outcome; "a client that…".
FORBIDDEN_WORDS = re.compile(r"\b(?:told|heard|whoever|rival|anew|in vain|in doubt|doubt|heal|vouch|perhaps|relied upon|taken for|so many|"
                             r"stands still|goes on|by now|all the same|word of)\b", re.I)
# So begins a clause, and not a sentence. The share of the tree's block comments that do is printed, and bounded.
CLAUSE = re.compile(r"\W*(?:what|of|whether|those|who|which|from|with|without)\b", re.I)
CLAUSES_ALLOWED = 0.05
HEADINGS = ["Key layout", "Invariants", "Round trips", "When things fail", "Source"]


def of_the_tree():
    """What git tracks or would; where the sources came without it, all but what .gitignore names."""
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             check=False, capture_output=True) if os.path.exists(".git") else None
    if listing is not None and listing.returncode == 0:
        return listing.stdout.decode().split("\0")
    ignored = re.compile(r"^(?:build[^/]*|\.git)/|(?:^|/)__pycache__/|\.swp$")
    paths = (os.path.relpath(os.path.join(root, name)) for root, _, names in os.walk(".") for name in names)
    return [path for path in paths if not ignored.search(path)]


def tracked(*patterns):
    return sorted(path for path in of_the_tree() if path and os.path.exists(path)
                  and (not patterns or any(fnmatch.fnmatch(path, pattern) for pattern in patterns)))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def layer(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "common" and parts[1] in COMMON_LAYERS else parts[0]


def check_includes(path, text):
    own = layer(path)
    wrong = []
    for include in re.findall(r'#include "((?:common|tools|tests)/[^"]+)"', text):
        target = layer(include)
        if own in COMMON_LAYERS:
            fine = target in COMMON_LAYERS and COMMON_LAYERS.index(target) >= COMMON_LAYERS.index(own)
            fine = fine and (target != "values" or own == "values")  # only tools read values
        elif own == "tools":
            fine = target != "tests" and not (path.startswith("tools/cli/") and include.startswith("tools/commands/"))
        else:
            fine = True
        if not fine:
            wrong.append(include)
    check(not wrong, f"{path}: imports upwards: {', '.join(wrong)}")


def included_by(header, folder, seen):
    """Adds to `seen` what a header includes, itself or by headers of the same folder."""
    for include in re.findall(r'^#include ([<"][^>"]+[>"])', read(header), re.M):
        inner = include[1:-1]
        if include not in seen:
            seen.add(include)
            if os.path.dirname(inner) == folder and os.path.exists(inner):
                included_by(inner, folder, seen)


def check_repeated(path, text):
    """A source does not repeat what a header of its folder includes."""
    folder, there = os.path.dirname(path), set()
    includes = re.findall(r'^#include ([<"][^>"]+[>"])', text, re.M)
    for include in includes:
        if os.path.dirname(include[1:-1]) == folder and include != f'"{path[:-4]}.hpp"':
            included_by(include[1:-1], folder, there)
    own = path[:-4] + ".hpp"
    if os.path.exists(own):
        included_by(own, folder, there)
    repeated = [include for include in includes if include in there and include != f'"{own}"']
    check(not repeated, f"{path}: a header of its folder includes {', '.join(repeated)} already")


def room(path):
    parts = path.split("/")
    return parts[2] if "/".join(parts[:2]) in ROOMS and len(parts) > 3 else None


def check_rooms(path, text):
    """Returns the includes from one room into another."""
    own = room(path)
    into = [(room(include), include) for include in re.findall(r'#include "([^"]+)"', text) if room(include) not in (None, own)]
    if own and os.path.basename(path) in PUBLIC.get(own, {f"{own}.hpp"}):
        within = [os.path.basename(include) for include in re.findall(r'#include "([^"]+)"', text) if room(include) == own]
        hidden = [name for name in within if name not in PUBLIC.get(own, {f"{own}.hpp"})]
        check(not hidden, f"{path}: who includes it sees what is private to its room: {', '.join(hidden)}")
    private = [include for name, include in into if os.path.basename(include) not in PUBLIC.get(name, {f"{name}.hpp"})]
    check(not private, f"{path}: includes what is private to its room: {', '.join(private)}")
    wrong = [include for name, include in into if own and (own, name) not in ARROWS]
    check(not wrong, f"{path}: no arrow leads from {own} to {', '.join(wrong)}")
    return [(own, name) for name, _ in into if own]


def check_format(paths):
    said = subprocess.run(["clang-format", "--version"], check=False, capture_output=True, text=True).stdout
    if f"version {CLANG_FORMAT}." not in said:
        print(f"not checked: the format, which is that of clang-format {CLANG_FORMAT}; this is {said.strip()}")
        return
    done = subprocess.run(["clang-format", "--dry-run", "--Werror", *paths], check=False, capture_output=True, text=True)
    wrong = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error: code should be clang-formatted", done.stderr, re.M)))
    for path in paths:
        check(path not in wrong, f"{path}: not as .clang-format says; run clang-format -i on it")
    check(done.returncode == 0 or wrong, f"clang-format: {done.stderr.strip()[:200]}")


def check_common(path, text):
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    for pattern, what in FORBIDDEN_IN_COMMON.items():
        if path.startswith(CLOCK_EXCEPTIONS) or (path in EXIT_EXCEPTIONS and "exit" in what):
            continue
        check(not re.search(pattern, code), f"{path}: {what}")
    heavy = re.findall(r"#include <(?:CLI/|iostream)", text)
    check(not heavy, f"{path}: includes {heavy}")
    for header, users in JSON_USERS.items():
        check(bool(re.search(rf'#include [<"]{header}[>"]', text)) == (path in users), f"{path}: only {sorted(users)} include {header}")


def check_structure_header(path, text):
    missing = [heading for heading in HEADINGS if not re.search(rf"^// {heading}\b", text, re.M)]
    check(not missing, f"{path}: header without {', '.join(missing)}")


def check_public(path, text):
    hits = re.findall(r"\b(?:TO[D]O|FIX[M]E|X{3})\b", text)
    check(not hits, f"{path}: {hits}")


def check_comments(path, text, names):
    """clang-format leaves them as wide as they are, and no compiler sees that a file has another name now."""
    gone = {word for comment in re.findall(r"//(.*)", text) for word in re.findall(r"[\w/]+\.[ch]pp\b", comment)
            if os.path.basename(word) not in names}
    check(not gone, f"{path}: comments name files that there are not: {sorted(gone)}")
    # Texts in tests are as wide as what they are compared with.
    wide = [number for number, line in enumerate(text.split("\n"), 1) if len(line) > 110 and
            (re.match(r" *//(?! sources:)", line) or not path.startswith("tests/"))]
    check(not wide, f"{path}: wider than 110 columns in the lines {wide}")


def block_comments(text):
    return re.findall(r"(?m)^ *// ?(\S.*(?:\n *//.*)*)", text)


def check_words(path, text):
    """Returns how many block comments there are, and how many open with a clause."""
    private = sorted({found for comment in re.findall(r"(?:^|\s)// (.*)", text) for found in FORBIDDEN_WORDS.findall(comment)})
    check(not private, f"{path}: comments with {private}; use the field's terms")
    blocks = block_comments(text)
    return len(blocks), sum(CLAUSE.match(block) is not None for block in blocks)


def long_functions(text):
    """The first lines of bodies of more than 60 lines, at namespace level and in classes."""
    lines = text.split("\n")
    for indent in ("", "  "):
        start = 0
        for number, line in enumerate(lines):
            if re.match(indent + r"[^\s}/#]", line):
                start = number
            elif line == indent + "}" and number - start > 62:  # with the signature, on two lines
                yield start + 1


def check_begin(path, text):
    """A reader is soon at the first declaration; what it promises in detail may stand behind it."""
    first = next((number for number, line in enumerate(text.split("\n"), 1) if line and not re.match(r"\s*//|#|namespace\b", line)), 0)
    check(first <= 30, f"{path}: the first declaration is in line {first}, not before line 31")
    check(text.startswith("//"), f"{path}: does not begin with what it is")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    top = {path.split("/")[0] for path in tracked()}
    extra = {name for name in top if name not in TOP_LEVEL and not name.startswith(".")}
    check(not extra, f"top level: unexpected {sorted(extra)}")
    check(not TOP_LEVEL - top, f"top level: missing {sorted(TOP_LEVEL - top)}")
    sources = tracked("*.cpp", "*.hpp", "*.h", "*.c")
    check_format(sources)
    names = {os.path.basename(path) for path in sources}
    between, blocks, clauses = [], 0, 0
    for path in sources:
        text = read(path)
        check_includes(path, text)
        if path.startswith(("common/", "tools/")):
            between += check_rooms(path, text)
        check_public(path, text)
        check_comments(path, text, names)
        counted = check_words(path, text)
        blocks, clauses = blocks + counted[0], clauses + counted[1]
        if path.startswith(("common/", "tools/")):
            long = list(long_functions(text))
            check(not long, f"{path}: functions of more than 60 lines begin in the lines {long}")
        if path.startswith(("common/", "tools/")) and path.endswith(".cpp"):
            check_repeated(path, text)
        if path.startswith("common/"):
            check_common(path, text)
        if re.fullmatch(r"common/(?:structures/(\w+)/\1|operations/move/move)\.hpp", path) and room(path) != "elements" or path.endswith(("/table.hpp", "/hash.hpp", "/slots.hpp")):
            check_structure_header(path, text)
        if path.endswith(".hpp") and "/pch/" not in path:  # which are compiled as files of their own
            check("#pragma once" in text, f"{path}: no #pragma once")
            if path.startswith(("common/", "tools/")):
                check_begin(path, text)
    print(f"block comments: {blocks}, of which {clauses} open with a clause")
    check(clauses <= CLAUSES_ALLOWED * blocks, "too many block comments open with a clause: begin with a verb or a noun")
    print(f"includes between the rooms of {' and '.join(ROOMS)}: {len(between)}, over {len(set(between))} arrows")
    finish()


if __name__ == "__main__":
    main()
