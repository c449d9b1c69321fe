#!/usr/bin/env python3
"""Sums up what tests/exhaustive prints, for the README:  build/tests/exhaustive | tests/exhaustive/count.py"""
import re
import sys

LINE = re.compile(r"^(.{64,}?)\s.*?(\d+) schedules\s+(\d+) pruned\s+(complete|not complete|violated)\s+([\d.]+) s")

sums = {}
for line in sys.stdin:
    found = LINE.match(line)
    if not found:
        continue
    name, schedules, pruned, verdict, seconds = found.groups()
    several = re.search(r"\b(2|two|3) copies\b", name) is not None
    entry = sums.setdefault("several copies" if several else "one copy", [0, 0, 0, 0, 0, 0.0])
    for i, amount in enumerate((1, int(schedules), int(pruned), verdict != "complete", verdict == "violated", float(seconds))):
        entry[i] += amount
for kind, (pairs, schedules, pruned, open_, violated, seconds) in sorted(sums.items()):
    print(f"{kind}: {pairs} scenarios, {schedules} schedules, {pruned} pruned, {open_} not complete, {violated} violated, {seconds:.0f} s")
