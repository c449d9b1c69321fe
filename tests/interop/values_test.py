#!/usr/bin/env python3
"""Real clients store values and read them back; `mcds item get --decode` shows the same, as JSON.

Usage: values_test.py BUILD_DIR [--all] [--client NAME]… [--verbose]; without --all only the clients that are quick to install.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from servers import Memcacheds

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

WRITERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "writers")
TIMEOUT_S = 120
JAR = "/usr/share/java/spymemcached.jar"
BOTH = ("plain", "compress")


@dataclass(frozen=True)
class Writer:
    name: str
    format: str
    command: tuple
    modes: tuple = BOTH
    options: tuple = ()
    build: tuple = ()
    quick: bool = False
    profile: str = ""  # that names the format as well


def python(name, format_name, quick=True, modes=BOTH, profile=""):
    return Writer(name, format_name, ("python3", "values.py", name), modes, quick=quick, profile=profile)


def php(serializer, compression):
    modes = ("compress",) if compression else ("plain",)
    return Writer(f"php-memcached {serializer} {compression}", "php-memcached", ("php", "values.php", "Memcached"), modes,
                  (serializer, compression) if compression else (serializer,), quick=True, profile="php-memcached-default")


SPYMEMCACHED_BUILD = ("javac", "-cp", JAR, "-d", "{out}", "SpymemcachedValues.java")
WRITERS_OF = (
    python("pymemcache", "pymemcache", modes=("plain",), profile="pymemcache"),
    *(python(f"pymemcache:{protocol}", "pymemcache", modes=("plain",)) for protocol in range(2, 6)),
    python("python-memcached", "python-memcached", profile="python-memcached"),
    python("pylibmc", "pylibmc", profile="pylibmc-ketama"),
    python("bmemcached", "bmemcached", profile="bmemcached-distributed"),
    python("django-pymemcache", "pymemcache", quick=False, modes=("plain",)),
    python("django-pylibmc", "pylibmc", quick=False, modes=("plain",)),
    python("django-python-memcached", "python-memcached", quick=False, modes=("plain",)),
    *(php(serializer, compression) for serializer in ("php", "igbinary", "json", "json_array") for compression in ("", "fastlz", "zlib")),
    Writer("php-memcache", "php-memcache", ("php", "values.php", "Memcache"), quick=True, profile="php-memcache-default"),
    Writer("dalli", "dalli", ("ruby", "values.rb", "dalli"), quick=True, profile="dalli"),
    Writer("Rails", "rails", ("ruby", "values.rb", "rails"), profile="rails"),
    Writer("Cache::Memcached", "perl", ("perl", "values.pl", "Cache::Memcached"), quick=True, profile="perl-cache-memcached"),
    Writer("Cache::Memcached::Fast", "perl", ("perl", "values.pl", "Cache::Memcached::Fast"), quick=True, profile="perl-cache-memcached-fast"),
    Writer("npm memcached", "node-memcached", ("node", "values.js", "memcached"), ("plain",), profile="node-memcached"),
    Writer("memjs", "raw", ("node", "values.js", "memjs"), ("plain",)),
    Writer("gomemcache", "raw", ("{out}/values", "gomemcache"), ("plain",), build=("go", "build", "-o", "{out}/values", "values.go")),
    Writer("spymemcached", "spymemcached", ("java", "-cp", f"{{out}}:{JAR}", "SpymemcachedValues", "spymemcached"),
           build=SPYMEMCACHED_BUILD, profile="spymemcached"),
    Writer("spymemcached Whalin", "spymemcached-whalin", ("java", "-cp", f"{{out}}:{JAR}", "SpymemcachedValues", "spymemcached-whalin"),
           build=SPYMEMCACHED_BUILD),
)


def comparable(value, containers):
    """The same with references followed and sets sorted. `containers`: those that were opened so far."""
    if isinstance(value, dict):
        containers.append(value)
        if set(value) == {"@ref"}:
            return comparable(containers[value["@ref"] - 1], list(containers))
        if set(value) == {"@set"}:
            containers.append(value["@set"])
            return {"@set": sorted((comparable(one, containers) for one in value["@set"]), key=json.dumps)}
        return {name: comparable(one, containers) for name, one in value.items()}
    if isinstance(value, list):
        containers.append(value)
        return [comparable(one, containers) for one in value]
    return value


class Test:
    def __init__(self, build, address, out, verbose):
        self.mcds = os.path.abspath(os.path.join(build, "tools/mcds"))
        self.address, self.out, self.verbose = address, out, verbose
        self.environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOPATH": "/usr/share/gocode", "GOCACHE": os.path.join(out, "go"),
                            "NODE_PATH": os.path.abspath(os.path.join(build, "interop/node_modules"))}

    def call(self, words, text=None):
        words = [word.replace("{out}", self.out) for word in words]
        done = subprocess.run(words, cwd=WRITERS, env=self.environment, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.returncode} {done.stderr[-2000:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def run(self, writer):
        if writer.build:
            self.call(writer.build)
        for mode in writer.modes:
            read = self.call([*writer.command, self.address, mode, *writer.options])
            self.compare(writer, mode, read, ["--decode", writer.format])
            if writer.profile:
                self.compare(writer, mode, read, ["--as", writer.profile])

    def compare(self, writer, mode, read, options):
        keys = "".join(line["key"] + "\n" for line in read)
        shown = self.call([self.mcds, "--servers", self.address, "item", "get", "-", *options], keys)
        compressed = sum(line["encoding"][0] in ("zlib", "gzip", "fastlz") or "zlib" in line["encoding"] for line in shown)
        check(len(read) >= 20 and len(shown) == len(read), f"{writer.name} {mode}: {len(shown)} of {len(read)} values are shown")
        check((compressed > 0) == (mode == "compress"), f"{writer.name} {mode}: {compressed} values are compressed")
        for wanted, line in zip(read, shown):
            decoded = comparable(line["decoded"], []) if "decoded" in line else "nothing"
            value = comparable(wanted["value"], [])
            check(decoded == value and "problem" not in line and "guessed" not in line,
                  f"{writer.name} {mode} {options} {line['encoding']}: the client reads {json.dumps(value)[:300]}, shown is "
                  f"{json.dumps(decoded)[:300]} {line.get('problem', '')}")
        if self.verbose:
            print(f"{writer.name} {mode} {' '.join(options)}: {len(read)} values, {compressed} compressed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--client", action="append", default=[])
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, Memcacheds(directory) as memcacheds:
        server = memcacheds.on_kernel_port()
        test = Test(arguments.build, f"127.0.0.1:{server.port}", directory, arguments.verbose)
        for writer in WRITERS_OF:
            if (writer.name in arguments.client) if arguments.client else (arguments.all or writer.quick):
                try:
                    test.run(writer)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    check(False, f"{writer.name}: {error}")
    finish(40)


if __name__ == "__main__":
    main()
