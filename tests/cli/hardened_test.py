#!/usr/bin/env python3
"""The flags that make a fault of ours an end instead of a way in: what readelf finds of them in the built program;
and the parsers of the libraries that read its arguments and its JSON.

Usage: hardened_test.py BUILD_DIR
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from checks import check, finish

BUILD = os.path.abspath(sys.argv[1])


def readelf(*options):
    return subprocess.run(["readelf", "-W", *options, os.path.join(BUILD, "tools", "mcds")], capture_output=True, text=True, check=True).stdout


def main():
    with open(os.path.join(BUILD, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as file:
        options = {option["name"]: option["value"] for option in json.load(file)}
    symbols = readelf("--syms")
    check("_ZN3CLI3App6_parse" in symbols, "CLI11's parser is not in the program")
    check("18sax_parse_internalI" in symbols, "nlohmann_json's SAX parser is not in the program")
    if options["b_sanitize"] != "none":
        check("__asan_init" in symbols, "a build with sanitizers has no AddressSanitizer")
        return finish()
    header, segments, dynamic = readelf("-h"), readelf("-l"), readelf("-d")
    stack = next(line for line in segments.splitlines() if "GNU_STACK" in line)
    check("DYN" in header, "the program is not position independent")
    check("GNU_RELRO" in segments, "no RELRO")
    check("NOW" in dynamic, "symbols are not bound at the start, so RELRO does not cover them")
    check("RW " in stack and "RWE" not in stack, f"the stack is executable: {stack}")
    check("__stack_chk_fail" in symbols, "no stack protector")
    check("__glibcxx_assert_fail" in symbols or "glibcxx_assert" in symbols, "no assertions of the library")
    if options["optimization"] not in ("0", "g", "plain"):
        check("_chk@" in symbols, "_FORTIFY_SOURCE did nothing")
    return finish()


if __name__ == "__main__":
    main()
