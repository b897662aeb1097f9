#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compares a trace file of lcov's with what gcov counted in the same run.

coverage.py TRACEFILE [--branches] SOURCE GCOV [SOURCE GCOV...]

No line may be seen that gcov has at 0, or does not have. Lines that only gcov has are shown by kind: those without a row
in the line table (case, labels, what is folded away) may be at most 4 % of what ran. With --branches, functions and the
ways of branches must be those of "gcov -b -c", too.
"""

import collections
import re
import sys

KINDS = [("case", r"(case\b|default\b)"), ("label", r"\w+:(?!:)"), ("break", r"break\b"), ("goto", r"goto\b"),
         ("va_end", r"va_end\b")]


def read_gcov(path):
    lines, functions, ways, number = {}, {}, collections.defaultdict(list), 0
    for text in open(path, encoding="utf-8", errors="replace"):
        if match := re.match(r"function (\S+) called (\d+)", text):
            functions[match[1]] = int(match[2])
        elif match := re.match(r"branch +\d+ (?:taken (\d+)|never executed)", text):
            ways[number].append(int(match[1] or 0))
        elif match := re.match(r" *([^:]+?)\*?: *(\d+):", text):
            number = int(match[2])
            if number and match[1] != "-":
                lines[number] = 0 if match[1][0] in "#=" else int(match[1])
    return lines, functions, ways


def read_lcov(path, source):
    lines, functions, ways, here = collections.Counter(), {}, collections.defaultdict(list), False
    for text in open(path, encoding="utf-8", errors="replace"):
        key, _, value = text.rstrip("\n").partition(":")
        if key == "SF":
            here = value.endswith("/" + source)
        elif here and key == "DA":
            number, count = value.split(",")
            lines[int(number)] += int(count)
        elif here and key == "FNDA":
            count, name = value.split(",")
            functions[name] = int(count)
        elif here and key == "BRDA":
            number, _, _, count = value.split(",")
            ways[int(number)].append(int(count))
    return lines, functions, ways


def kind(text):
    return next((name for name, pattern in KINDS if re.match(pattern, text)), text)


def compare(tracefile, source, gcov, branches):
    judged, judged_functions, judged_ways = read_gcov(gcov)
    lines, functions, ways = read_lcov(tracefile, source.rsplit("/", 1)[-1])
    texts = [""] + [text.strip() for text in open(source, encoding="utf-8", errors="replace")]
    ran = [n for n in judged if judged[n]]
    wrong = [n for n in lines if lines[n] and not judged.get(n)]
    missing = [n for n in ran if not lines[n]]
    kinds = collections.Counter(kind(texts[n]) for n in missing)
    equal = sum(lines[n] == judged[n] for n in ran)
    print(f"{source.rsplit('/', 1)[-1]}: {len(ran)} lines ran, {sum(n > 0 for n in lines.values())} were seen, "
          f"{len(wrong)} wrong, {equal} counts equal; only gcov has {len(missing)}: {dict(kinds.most_common(12))}")
    for n in wrong:
        print(f"  line {n} is seen {lines[n]} times, gcov has {judged.get(n)}: {texts[n]}")
    bad = len(wrong) + (len(missing) * 25 > len(ran) and not branches)
    if branches:
        unknown = [n for n in missing if kind(texts[n]) not in dict(KINDS)]
        other = [name for name, n in judged_functions.items() if functions.get(name) != n]
        # The ways of a switch are its cases to gcov; its code compares again and again.
        others = [n for n in judged_ways if any(judged_ways[n]) and not texts[n].startswith("switch") and
                  sorted(judged_ways[n]) != sorted(ways[n])]
        print(f"  {len(judged_functions)} functions, other counts: {other}; branches on {len(judged_ways)} lines, "
              f"other ways: {[(n, judged_ways[n], ways[n]) for n in others]}; without a reason: {unknown}")
        bad += len(unknown) + len(other) + len(others)
    return bad, len(ran)


def main(arguments):
    branches = "--branches" in arguments
    tracefile, *pairs = [argument for argument in arguments if argument != "--branches"]
    results = [compare(tracefile, *pair, branches) for pair in zip(pairs[::2], pairs[1::2])]
    sys.exit(any(bad for bad, _ in results) or sum(ran for _, ran in results) < 30)


main(sys.argv[1:])
