#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Does ptdecode decode the test traces of libipt as libipt's developers expect?

TREE is a checkout of libipt. Each file test/src/*.ptt in it is a small program, the PT packets of a run of
it, and the instructions and events that libipt's decoder prints of that run, perhaps for several CPU models.
This program builds libipt's compiler of these files (pttc; cmake and yasm are needed), lets ptdecode decode
each file for each CPU model as a bare PT stream, and compares instructions, gaps and marks with what is
expected. Marks between two instructions may stand in another order, and may be missing beside a gap. All
differences are printed but those of KNOWN, which has the reason for each.

    tests/tools/ptt.py ../libipt [--pttc PROGRAM] [--engine NAME] [-v] [FILE[@F/M]]...

Exit status: 0 all is as expected; 1 something differs, or differs no longer; 77 TREE is not there.
"""

import argparse
import collections
import difflib
import fnmatch
import os
import re
import shlex
import subprocess
import sys
import tempfile

# Of one case's differences, so many lines are printed.
LINES_MAX = 40

# What ptxed prints of an event, and the mark that ptdecode gives for it. None: there is no such mark,
# because what follows shows the event (packets are on again), or because nothing of it is in the stream.
EVENTS = (
    (r"enabled|resumed|exec mode.*|block|end of trace|interrupts (en|dis)abled|mnt: .*|[0-9a-f]+  tick", None),
    (r"(?:[0-9a-f]+  )?overflow|resumed", "gap: overflow"),
    (r".*error: .*", "gap"),
    (r"interrupt(, from: .*)?|(?:[0-9a-f]+  )?disabled.*", "left"),
    (r"stopped", "stop"),
    (r"begin transaction", "tsx: begin"),
    (r"committed", "tsx: commit"),
    (r"aborted", "tsx: abort"),
    (r"paging, cr3: ([0-9a-f]+).*", "paging: {}"),
    (r"vmcs, base: ([0-9a-f]+)", "vmcs: {}"),
    (r"ptwrite: ([0-9a-f]+)", "ptwrite: {}"),
    (r"cbr: ([0-9a-f]+)", "cbr: {}"),
    (r"mwait ([0-9a-f]+) .*", "mwait: {}"),
    (r"(pwre|pwrx|exstop|trig)\b.*", "{}"),
    (r"(?:interrupt|swintr|uintr|uiret|iret|smi|rsm|sipi|init|vmentry|vmexit|shutdown|syscall)\b.*", "cfe"),
)

# Why a case differs from what is expected, and will.
KNOWN = {
    "bad_cpu": "an unknown CPU model is no error: ptdecode says that it knows no errata of it, and decodes",
    "ptet": "events of unknown kinds are shown",
    "ptet-evd_*": "data of events that do not fit the event are shown, not refused",
    "psb-vmcs": "what the first PSB+ says is shown",
    "ptxed-tick": "what the first PSB+ says is shown",
    "*-trig": "the mark stands behind the last branch, and has the count of instructions that ran since",
}


def expected_of(text):
    """The instructions and marks in what ptxed prints."""
    items = []
    in_transaction = False
    for line in text.splitlines():
        line = line.strip()
        insn = re.fullmatch(r"(\? )?([0-9a-f]{16})", line)
        event = re.fullmatch(r"\[(.*?)(?:, (?:ip|at): [0-9a-f]+)?\]", line)
        if insn:
            # A PSB+ may say that a transaction has begun, which ptxed does not print.
            items += ["tsx: begin"] if insn.group(1) and not in_transaction else []
            items.append(insn.group(2).lstrip("0"))
            in_transaction = bool(insn.group(1))
        elif event:
            items += [mark for mark in (mark_of(event.group(1)),) if mark]
            in_transaction = in_transaction or "tsx: begin" in items[-1:]
        elif not re.match(r"(insn|blocks):", line):
            sys.exit(f"what ptxed prints is not understood: {line}")
    return items


def mark_of(event):
    for pattern, mark in EVENTS:
        match = re.fullmatch(pattern, event)
        if match:
            return mark and mark.format(*(number_of(group) for group in match.groups()))
    sys.exit(f"an event of ptxed is not understood: [{event}]")


def number_of(text):
    return text and (text.lstrip("0") or "0" if re.fullmatch("[0-9a-f]+", text) else text)


def decoded_of(text):
    """The instructions and marks in the text of ptdecode."""
    items = []
    for line in text.splitlines():
        mark = re.match(r"#.*? \[\d+\] +\S+: (\w+): ?(.*)", line)
        insn = re.match(r" .*? \[\d+\] +\S+: +([0-9a-f]+) ", line)
        if insn:
            items.append(insn.group(1))
        elif mark:
            items += [item for item in (item_of(*mark.groups()),) if item]
    return items


def item_of(kind, rest):
    value = re.sub(r",? ?ip [0-9a-f]+$", "", rest).split()
    if kind in ("async", "off"):
        return "left"
    if kind == "gap":
        return "gap: overflow" if rest.startswith("overflow") else "gap"
    if kind == "tsx":
        return f"tsx: {value[0].rstrip(',')}"
    if kind in ("paging", "vmcs", "ptwrite", "cbr", "mwait"):
        return f"{kind}: {value[0][2:] if value else '0'}"
    return None if kind == "evd" else kind


def ordered(items):
    """The same for all orders of the marks between two instructions, of which a gap hides the others."""
    groups = [[]]
    for item in items:
        if re.fullmatch("[0-9a-f]+", item):
            groups += [[item], []]
        else:
            groups[-1].append(item)
    for group in groups:
        if "gap" in group:
            group[:] = ["gap"]
        if "tsx: abort" in group and "tsx: begin" in group:
            group.remove("tsx: begin")
    return [item for group in groups for item in sorted(group)]


class Case:
    def __init__(self, tree, name, cpu):
        self.path = os.path.join(tree, "test/src", name + ".ptt")
        self.base = name
        self.cpu = cpu
        self.name = f"{name}@{cpu}" if cpu else name
        with open(self.path, encoding="utf-8") as f:
            self.text = f.read()

    def directives(self, word):
        return re.findall(rf"^[ \t]*;[ \t]*{word}[ \t]+(.*?)[ \t]*$", self.text, re.M)

    def options(self):
        """The options of ptdecode that are ptxed's here."""
        org = re.search(r"^org[ \t]+(\S+)", self.text, re.M | re.I).group(1)
        options = ["--raw-pt", self.base + ".pt"]
        if self.cpu:
            options += ["--cpu-model", "/".join((self.cpu.split("/") + ["0"])[:3])]
        given = shlex.split(" ".join(self.directives("opt:ptxed")))
        values = dict(zip(given, given[1:]))
        if "--filter:addr0_cfg" in values:
            first, last = (int(values[f"--filter:addr0_{edge}"], 0) for edge in "ab")
            word = {"1": "filter", "2": "tracestop"}[values["--filter:addr0_cfg"]]
            options += ["--filter", f"{word} {first:#x}/{last - first + 1:#x}"]
        for theirs, ours in (("--mtc-freq", "--mtc-freq"), ("--nom-freq", "--nom-freq")):
            if theirs in values:
                options += [ours, values[theirs]]
        if "--cpuid-0x15.eax" in values:
            options += ["--cpuid-15", f"{values['--cpuid-0x15.eax']}/{values['--cpuid-0x15.ebx']}"]
        # The last --raw is a part of the program only.
        # ptxed's FILE:OFFSET:ADDRESS is what follows, too, of the file at its own address.
        return options + ["--raw-code", f"{self.base}.bin@{int(org, 0):#x}"]


def cases_of(tree, wanted):
    names = sorted(name[:-4] for name in os.listdir(os.path.join(tree, "test/src")) if name.endswith(".ptt"))
    for name in names:
        for cpu in " ".join(Case(tree, name, None).directives("cpu")).split() or [None]:
            case = Case(tree, name, cpu)
            if not wanted or any(fnmatch.fnmatch(case.name, w) or w == name for w in wanted):
                yield case


def build_pttc(tree, folder):
    for command in (["cmake", "-S", tree, "-B", folder, "-DPTTC=ON", "-DPTUNIT=OFF", "-DPTXED=OFF"],
                    ["make", "-C", folder, "pttc"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(folder, "bin/pttc")


def compare(case, pttc, ptdecode, engine):
    """Return: None if there is nothing to compare; else both lists of items."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = subprocess.run([pttc] + (["--cpu", case.cpu] if case.cpu else []) + [os.path.abspath(case.path)],
                                  cwd=folder, capture_output=True, text=True)
        if compiled.returncode != 0:
            sys.exit(f"{case.name}: {compiled.stderr}")
        files = [name for name in compiled.stdout.split() if "-ptxed" in name]
        if not files:
            return None
        with open(os.path.join(folder, files[0]), encoding="utf-8") as f:
            expected = f.read()
        decoded = subprocess.run([ptdecode, "text", "-e", engine] + case.options(), cwd=folder, capture_output=True,
                                 text=True)
        items = decoded_of(decoded.stdout) if decoded.returncode in (0, 3) else [decoded.stderr.strip()]
        if "--quiet" in " ".join(case.directives("opt:ptxed")):
            return [re.search(r"insn: +([0-9]+)", expected).group(1) + " instructions"], counted(items)
        return expected_of(expected), items


def counted(items):
    return [f"{sum(1 for item in items if re.fullmatch('[0-9a-f]+', item))} instructions"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tree", help="a checkout of libipt")
    parser.add_argument("cases", nargs="*", help="FILE or FILE@FAMILY/MODEL, patterns allowed (default: all)")
    parser.add_argument("--pttc", help="libipt's compiler of .ptt files (default: built from TREE)")
    parser.add_argument("--ptdecode", default="build/ptdecode")
    parser.add_argument("--engine", default="flow")
    parser.add_argument("-v", "--verbose", action="store_true", help="print known differences, too")
    args = parser.parse_intermixed_args()
    if not os.path.isdir(os.path.join(args.tree, "test/src")):
        print(f"skipped: {args.tree} is no checkout of libipt")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        return judge(args, os.path.abspath(args.pttc or build_pttc(args.tree, folder)))


def judge(args, pttc):
    counts = collections.Counter()
    for case in cases_of(args.tree, args.cases):
        both = compare(case, pttc, os.path.abspath(args.ptdecode), args.engine)
        if not both:
            counts["without"] += 1
            continue
        expected, decoded = map(ordered, both)
        reason = next((why for pattern, why in KNOWN.items() if fnmatch.fnmatch(case.name, pattern)), None)
        differs = expected != decoded
        counts["known" if differs and reason else "different" if differs or reason else "same"] += 1
        if differs and (args.verbose or not reason):
            show(case, expected, decoded, reason)
        if reason and not differs:
            print(f"=== {case.name}: differs no longer: {reason}")
    print(f"{counts.total()} cases: {counts['same']} as expected, {counts['known']} known to differ, "
          f"{counts['different']} wrong, {counts['without']} of packets only")
    return 1 if counts["different"] or not counts["same"] else 0


def show(case, expected, decoded, reason):
    print(f"=== {case.name}: {reason or 'differs'}")
    for line in list(difflib.unified_diff(expected, decoded, "expected", "decoded", lineterm="", n=2))[:LINES_MAX]:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
