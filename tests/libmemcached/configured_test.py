#!/usr/bin/env python3
"""--servers-from libmemcached:STRING beside a program that links libmemcached: the same servers, the same places of keys; and
strings that are made to end or hang a program.

Usage: configured_test.py BUILD_DIR. Every tenth combination and 300 random strings; all, and 100 000, with MCDS_TEST_FULL=1.
"""
import contextlib
import glob
import itertools
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import FULL, check, finish

HERE = os.path.dirname(os.path.abspath(__file__))
MCDS = os.path.join(os.path.abspath(sys.argv[1]), "tools", "mcds")
SEED = int(os.environ.get("MCDS_TEST_SEED") or random.randrange(1 << 30))
HASHES = ["MD5", "CRC", "FNV1_64", "FNV1A_64", "FNV1_32", "FNV1A_32", "MURMUR", "JENKINS"]
SERVERS = "--SERVER=10.0.0.1:11211/?1 --SERVER=cache-b.example:11212/?3 --SERVER=10.0.0.10 --SERVER=cache-a.example/?2 --SOCKET=\"/run/m.sock\""
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("MCDS_", "MEMCACHED_", "XDG_", "LIBMEMCACHED"))}
CLEAN |= {"HOME": "/nonexistent"}
KEYS = [f"key:{number * 2654435761 % (1 << 32):x}" for number in range(417)] + ["k", "x" * 200, "ключ"]

# As users write them; the last ones are refused by the library.
STRINGS = """--SERVER=10.0.0.1
--server=10.0.0.1:11212 --Server=10.0.0.2
--SERVER=localhost:11211 --SERVER=cache1.example.com:11300/?5 --DISTRIBUTION=consistent
--DISTRIBUTION=consistent --SERVER=10.0.0.1:11211/?4 --SERVER=10.0.0.2:11211/?1
--DISTRIBUTION=consistent,CRC --SERVER=10.0.0.1 --SERVER=10.0.0.2
--DISTRIBUTION=modula --SERVER=10.0.0.2 --SERVER=10.0.0.1 --SORT-HOSTS
--SORT-HOSTS --SERVER=10.0.0.2 --SERVER=10.0.0.1 --SERVER=10.0.0.2:11000
--HASH=MD5 --SERVER=10.0.0.1 --SERVER=10.0.0.2 --NAMESPACE=app
--NAMESPACE="app:" --SERVER=10.0.0.1 --SERVER=10.0.0.2 --HASH-WITH-NAMESPACE
--HASH-WITH-NAMESPACE --NAMESPACE=foo --HASH=FNV1A_64 --SERVER=10.0.0.1 --SERVER=10.0.0.2 --SERVER=10.0.0.3
--SOCKET="/run/a.sock" --SOCKET="/run/b.sock"/?3
--SOCKET="/a/?3" --SERVER=10.0.0.1
--SERVER=10.0.0.1 --SERVER=10.0.0.1
--SERVER=10.0.0.1 --BINARY-PROTOCOL --NUMBER-OF-REPLICAS=1 --SERVER=10.0.0.2 --SERVER=10.0.0.3
--SERVER=10.0.0.1 --REMOVE-FAILED-SERVERS=5 --SERVER=10.0.0.2
--SERVER=10.0.0.1 --TCP-NODELAY --TCP-KEEPALIVE --SUPPORT-CAS --BUFFER-REQUESTS --NOREPLY --VERIFY-KEY
--CONNECT-TIMEOUT=100 --POLL-TIMEOUT=250 --RCV-TIMEOUT=10 --SND-TIMEOUT=10 --RETRY-TIMEOUT=2 --SERVER=10.0.0.1
--IO-BYTES-WATERMARK=100 --IO-KEY-PREFETCH=10 --IO-MSG-WATERMARK=20 --SERVER=10.0.0.1
--SOCKET-RECV-SIZE=4096 --SOCKET-SEND-SIZE=4096 --RANDOMIZE-REPLICA-READ --SERVER=10.0.0.1
--POOL-MIN=2 --POOL-MAX=10 --SERVER=10.0.0.1
--SERVER=10.0.0.1 --USER-DATA
--FETCH-VERSION --SERVER=10.0.0.1
--SERVER=10.0.0.1:0 --SERVER=10.0.0.2:65535
--SERVER=host_name-with.dots:1
--SERVER=10.0.0.1 END --SERVER=10.0.0.2
--SERVER=10.0.0.1/?99999 --SERVER=10.0.0.2/?1 --DISTRIBUTION=consistent
--DISTRIBUTION=consistent --SERVER=10.0.0.1/?99999 --SERVER=10.0.0.2/?1
--HASH=HSIEH --SERVER=10.0.0.1
--SERVER=10.0.0.1  --SERVER=10.0.0.2
--SERVER=a
--SERVER=10.0.0.1:
--SERVER=[::1]:11211
--SERVER=10.0.0.1 --HASH=MD5 --HASH=CRC
--SERVER=10.0.0.1 --DISTRIBUTION=ketama
--SERVER=10.0.0.1 --NONSENSE
--SERVER=10.0.0.1,10.0.0.2
--NAMESPACE=a --NAMESPACE=b --SERVER=10.0.0.1
--SERVER=10.0.0.1/?-1
--SERVER=10.0.0.1:123456
--SERVERS=10.0.0.1
--HASH=MD5 --SERVER=10.0.0.1 --USE-UDP
--SERVER=-host --SERVER=10.0.0.1""".splitlines()

# What must not reach the library, or not end us there: exit 78, one line of error.
HOSTILE = ["RESET", "--SERVER=10.0.0.1 RESET", "--SERVER=10.0.0.1 reset --SERVER=10.0.0.2", "\tRESET", "--SERVER=10.0.0.1 \n\tReset", "RESET_",
           "INCLUDE /etc/passwd", 'INCLUDE "/etc/passwd"', "--SERVER=10.0.0.1 include /dev/zero", "ERROR", "CSL_ERROR", "--SERVER=10.0.0.1 ERROR",
           "--CONFIGURE-FILE=/etc/passwd", '--SERVER=10.0.0.1 --configure-file="/dev/zero"', "--SERVER=10.0.0.1:65536", "--SERVER=10.0.0.1:99999",
           "--SERVER=10.0.0.1 --LOAD-FROM-FILE=/etc/passwd", "DEBUG --SERVER=10.0.0.1", "SERVERS", '"RESET" RESET', '# "\n RESET', '--NAMESPACE="a RESET',
           "--SERVER=" + "a" * 5000, "--SERVER=" + "a" * 60000, "--NAMESPACE=" + "n" * 300 + " --SERVER=10.0.0.1", '--SOCKET="' + "/s" * 4000 + '"',
           " ".join(f"--SERVER=10.0.1.{number}" for number in range(101)), " ".join(f"--SOCKET=\"/s{number}\"" for number in range(2000)), "x" * 70000,
           "", " ", "--DISTRIBUTION=RANDOM --SERVER=10.0.0.1", "--DISTRIBUTION=consistent", '--SERVER="10.0.0.1 --SERVER=b']


def combinations():
    """Distributions and hashes in every order with the servers, with and without sorting."""
    distributions = [None, "MODULA", "CONSISTENT"] + [f"CONSISTENT,{name}" for name in HASHES[:7]]
    for distribution, name in itertools.product(distributions, [None] + HASHES):
        words = [SERVERS] + ([f"--DISTRIBUTION={distribution}"] if distribution else []) + ([f"--HASH={name}"] if name else [])
        for order in itertools.permutations(words):
            yield " ".join(order)
            yield "--SORT-HOSTS " + " ".join(order)


def mcds(string, *words, stdin=None):
    source = ["--servers-from", "libmemcached:" + string]
    return subprocess.run([MCDS, *source, *words], env=CLEAN, capture_output=True, input=stdin, timeout=60, check=False)


def linked(folder, strings):
    """(servers, indexes of the keys) of each string; servers None: refused."""
    program, keys = os.path.join(folder, "configured"), os.path.join(folder, "keys")
    if not os.path.exists(program):
        subprocess.run(["cc", "-O1", "-o", program, os.path.join(HERE, "configured.c"), "-lmemcached"], check=True)
        with open(keys, "w", encoding="utf-8") as file:
            file.write(" ".join(KEYS))
    done = subprocess.run([program, keys], input="".join(string + "\n" for string in strings), capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        servers, indexes = line.split("|")
        yield (None if servers == "refused" else servers.split()), [int(word) for word in indexes.split()]


def compare(folder, strings):
    for string, (servers, indexes) in zip(strings, linked(folder, strings), strict=True):
        done = mcds(string, "where", "-o", "value", "-", stdin="".join(key + "\n" for key in KEYS).encode())
        if not servers:
            check(done.returncode == 78 and not done.stdout, f"{string!r}: the library refuses it, mcds ends with {done.returncode}")
            continue
        found = done.stdout.decode().split()
        wanted = [servers[index] for index in indexes]
        different = sum(one != other for one, other in zip(wanted, found))
        check(done.returncode == 0 and len(found) == len(wanted) and different == 0,
              f"{string!r}: {different} of {len(wanted)} keys differ, {len(found)} answers, exit {done.returncode}, {done.stderr!r}")


def refused(string, what):
    done = mcds(string, "where", "k")
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    check(done.returncode == 78 and not done.stdout and len(lines) == 1, f"{what!r}: ended with {done.returncode}, {done.stdout!r}, {done.stderr[:200]!r}")


def random_strings(count):
    choice = random.Random(SEED)
    words = ["--SERVER=", "--SOCKET=", "--DISTRIBUTION=", "--HASH=", "--NAMESPACE=", "--SORT-HOSTS", "--NUMBER-OF-REPLICAS=", "RESET", "INCLUDE", "ERROR", "END", "#",
             "\n", '"', "\\", "/?", ":", "10.0.0.1", "host.example", "99999", "0", " ", " ", " ", ",", "=", "MD5", "CONSISTENT", "RANDOM", "L\"", "\t", "--", "-", "_", "é",
             "--CONFIGURE-FILE=", "--BINARY-PROTOCOL", "CSL_ERROR", "DEBUG", "TRUE", "x" * 1100]
    for _ in range(count):
        if choice.random() < 0.2:
            yield bytes(choice.choice(range(1, 256)) for _ in range(choice.randrange(60))).decode("latin-1").lstrip("@")
        else:
            yield "".join(choice.choice(words) for _ in range(choice.randrange(1, 14)))


def never_harmed(folder, strings):
    """Exit 0 or 78, in time, nothing left behind: no process, no file, no core."""
    for string in strings:
        done = mcds(string, "where", "k")
        check(done.returncode in (0, 64, 78) and len(done.stderr.splitlines()) <= 1, f"seed {SEED}, {string!r}: ended with {done.returncode}, {done.stderr[:200]!r}")
    check(sorted(os.listdir(folder)) == ["configured", "keys"], f"files: {os.listdir(folder)}")


def findings(string):
    done = mcds(string, "ring", "check")
    return [json.loads(line) for line in done.stdout.splitlines()][:-1]


def traps():
    late = {found["check"]: found["message"] for found in findings("--SERVER=10.0.0.1/?3 --SERVER=10.0.0.2 --DISTRIBUTION=consistent")}
    check("--DISTRIBUTION=consistent in front" in late.get("weights_ignored", ""), f"weights in front of the distribution: {late}")
    early = {found["check"] for found in findings("--DISTRIBUTION=consistent --SERVER=10.0.0.1/?3 --SERVER=10.0.0.2")}
    check("weights_ignored" not in early and "same_as" in early, f"weights behind the distribution: {early}")
    path = {found["check"] for found in findings('--SOCKET="/a/?3" --SOCKET="/b"/?3')}
    check("weight_in_path" in path, f"a weight in quotation marks: {path}")


def same_profiles():
    for string, profile in (("--SERVER=10.0.0.1 --SERVER=10.0.0.2", "libmemcached-default"),
                            ("--DISTRIBUTION=consistent --SERVER=10.0.0.1 --SERVER=10.0.0.2", "libmemcached-consistent"),
                            ("--DISTRIBUTION=consistent --HASH=MD5 --SERVER=10.0.0.1/?2 --SERVER=10.0.0.2", "")):
        done = mcds(string, "where", "--explain", "k")
        explained = json.loads(done.stdout)["explain"]
        check(profile in ("", explained.get("same_as")), f"{string!r}: {explained}")


def namespaces():
    """The client's own prefix is not hashed, and a key is found by its whole name, too."""
    string = "--NAMESPACE=app: --SERVER=10.0.0.1 --SERVER=10.0.0.2 --SERVER=10.0.0.3".replace("app:", '"app:"')
    short = mcds(string, "where", "-o", "value", *"abcdefgh").stdout
    check(short == mcds(string, "where", "-o", "value", *("app:" + key for key in "abcdefgh")).stdout != b"", "a namespace is stripped")


def without_library(folder):
    """A name of the library that is no library, first in the loader's path."""
    path = os.path.join(folder, "no-library")
    os.mkdir(path)
    with open(os.path.join(path, "libmemcached.so.11"), "w", encoding="utf-8") as file:
        file.write("not a library")
    done = subprocess.run([MCDS, "--servers-from", "libmemcached:--SERVER=10.0.0.1", "where", "k"], env=CLEAN | {"LD_LIBRARY_PATH": path},
                          capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 78 and "libmemcached11" in done.stderr, f"without the library: {done}")
    done = subprocess.run([MCDS, "-s", "10.0.0.1", "where", "k"], env=CLEAN | {"LD_LIBRARY_PATH": path}, capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 0, f"without the library, not asked for: {done}")


def of_environment(text):
    """The processes whose environment has this text."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if text.encode() in file.read():
                found.append(path)
    return found


def calls_of_library():
    with open(os.path.join(HERE, "../../common/cluster/libmemcached/library.hpp"), encoding="utf-8") as source:
        return re.findall(r"MCDS_LOADED\(\w+, (\w+)\)", source.read())


def with_bad_library(folder):
    """One that never ends or crashes, while it parses and while it places."""
    path = os.path.join(folder, "bad-library")
    os.mkdir(path)
    good = """
        int memcached_server_count(void) { return 1; } const char* memcached_server_name(void) { return "10.0.0.1"; }
        unsigned short memcached_server_port(void) { return 11211; } void* memcached_server_instance_by_position(void) { return ""; }
        int memcached_generate_hash_value(void) { return 1; }\n"""
    good += "".join(f"long {name}(void) {{ return 0; }}\n" for name in calls_of_library() if f" {name}(" not in good and name not in ("memcached", "memcached_generate_hash"))
    hang, crash, leave, far = "for (;;);", "*(volatile char*)0 = 0;", "_exit(0);", "return 7;"
    for parse, place in ((hang, hang), (crash, crash), (leave, leave), ('return "";', crash), ('return "";', leave), ('return "";', far), ('return "";', hang)):
        code = good + f"#include <unistd.h>\nvoid* memcached(void) {{ {parse} }} int memcached_generate_hash(void) {{ {place} }}\n"
        subprocess.run(["cc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", os.path.join(path, "libmemcached.so.11")], input=code, text=True, check=True)
        done = subprocess.run([MCDS, "--servers-from", "libmemcached:--SERVER=10.0.0.1", "where", "k"], env=CLEAN | {"LD_LIBRARY_PATH": path},
                              capture_output=True, text=True, timeout=30, check=False)
        check(done.returncode == 78 and "did not answer" in done.stderr, f"a library that does {parse} {place}: {done}")
        check(not of_environment(path), f"{parse} {place}: a process is left")


def beside_profiles(folder):
    """The installed library agrees with every profile that it can be set to; one that puts all keys on the first server does not."""
    path = os.path.join(folder, "other-library")
    os.mkdir(path)
    code = """
        void* memcached_create(void* into) { return ""; } const char* memcached_server_name(void* server) { return "10.0.0.1"; }
        unsigned short memcached_server_port(void* server) { return 11211; } void* memcached_server_instance_by_position(void) { return ""; }
        const char* memcached_lib_version(void) { return "9.9"; }\n"""
    code += "".join(f"long {name}(void) {{ return 0; }}\n" for name in calls_of_library() if f" {name}(" not in code)
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-x", "c", "-", "-o", os.path.join(path, "libmemcached.so.11")], input=code, text=True, check=True)
    listed = subprocess.run([MCDS, "where", "--profiles"], env=CLEAN, capture_output=True, text=True, check=True).stdout
    profiles = [line["profile"] for line in map(json.loads, listed.splitlines()) if line.get("client") == "libmemcached"]
    set_here = 0
    for profile in profiles:
        for pool in ("10.0.0.1,10.0.0.2,10.0.0.3", "10.0.0.3/?2,10.0.0.1:11212/?3,cache-a.example/?1,unix:/run/m.sock"):
            for env in (CLEAN, CLEAN | {"LD_LIBRARY_PATH": path}):
                done = subprocess.run([MCDS, "-s", pool, "--as", profile, "ring", "check"], env=env, capture_output=True, text=True, timeout=60, check=False)
                differs = [line for line in done.stdout.splitlines() if "installed_differs" in line]
                check(not differs or env != CLEAN, f"{profile} of {pool}: {differs}")
                set_here += env != CLEAN and any("libmemcached 9.9 places" in line and f"the profile {profile}, made" in line for line in differs)
    check(set_here >= len(profiles), f"only {set_here} of {len(profiles)} profiles were compared")


def from_files(folder):
    path = os.path.join(folder, "strings")
    with open(path, "w", encoding="utf-8") as file:
        file.write("# the pool\n --SERVER=10.0.0.1\n --SERVER=10.0.0.2\n")
    done = mcds("@" + path, "where", "-o", "value", "k")
    check(done.returncode == 0 and done.stdout.startswith(b"10.0.0."), f"a file: {done}")
    config = os.path.join(folder, "mcds.conf")
    with open(config, "w", encoding="utf-8") as file:
        file.write("pool = main\n[pool main]\nservers_from = libmemcached:--DISTRIBUTION=consistent --SERVER=10.0.0.1/?3 --SERVER=10.0.0.2\n")
    done = subprocess.run([MCDS, "--config", config, "where", "k"], env=CLEAN, capture_output=True, text=True, timeout=60, check=False)
    check(done.returncode == 0 and '"profile":"libmemcached-configured"' in done.stdout, f"a pool of the configuration: {done}")


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        compare(folder, STRINGS)
        every = list(combinations())
        compare(folder, every if FULL else every[SEED % 10::10])
        for string in HOSTILE:
            refused(string, string[:60])
        never_harmed(folder, (re.sub("\0", "", string) for string in random_strings(100_000 if FULL else 300)))
        traps()
        same_profiles()
        namespaces()
        without_library(folder)
        with_bad_library(folder)
        beside_profiles(folder)
        from_files(folder)
    finish(20)


main()
