#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare an export with what -f calls:json says of the same recording.

usage: exported.py CALLS FORMAT EXPORT [ARG]...

CALLS is what -f calls:json wrote, from which the tree of calls is made anew: the calls that a function made come before
it, one deeper. The arguments: of collapsed, the last name of all threads.
"""
import collections
import json
import re
import sys


def load_calls(path):
    """The calls, each with those that it made as "inner", and those that nothing made."""
    with open(path, encoding="utf-8") as file:
        rows = [row for row in json.load(file)["calls"] if "gap" not in row]
    waiting = collections.defaultdict(list)
    roots = []
    for row in rows:
        below = waiting[row["stack"]]
        row["inner"] = []
        while below and below[-1]["depth"] == row["depth"] + 1:
            row["inner"].insert(0, below.pop())
        # What is on the stack of another thread, or of a part before a gap, is nobody's.
        while below and below[-1]["depth"] > row["depth"]:
            roots.append(below.pop())
        below.append(row)
    for below in waiting.values():
        roots += below
    return rows, roots


def collapse(roots, name, cost):
    stacks = collections.Counter()
    waiting = [(root, name) for root in roots]
    while waiting:
        row, above = waiting.pop()
        stack = above + ";" + row["function"].replace(";", ":")
        stacks[stack] += row[cost]
        waiting += [(inner, stack) for inner in row["inner"]]
    return +stacks


def check_collapsed(_, roots, export, name):
    with open(export, encoding="utf-8") as file:
        lines = file.read().splitlines()
    found = collections.Counter()
    for line in lines:
        stack, value = re.fullmatch(r"(.+) ([0-9]+)", line).groups()
        assert stack not in found, stack
        found[stack] = int(value)
    times, insns = (collapse(roots, name, key) for key in ("duration_self", "instructions_self"))
    expected = insns if sum(found.values()) == sum(insns.values()) else times
    assert found == expected, list(((found - expected) + (expected - found)).items())[:5]
    return f"{len(found)} stacks, {sum(found.values())} {'instructions' if expected is insns else 'ns'}"


def main():
    calls, kind, export, *args = sys.argv[1:]
    rows, roots = load_calls(calls)
    print(f"{kind}: {len(rows)} calls,", globals()["check_" + kind](rows, roots, export, *args))


main()
