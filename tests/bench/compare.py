#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Measure ptdecode against its peers on the inputs that run.sh made.

DIR has, for each input, NAME (a snapshot), or NAME.pt and NAME.code (a bare PT stream and a list of its code),
or both. Each row is one measure of one input: our user CPU time on one thread and the peer's, the least of several
runs that are interleaved, of whole processes. What both do is the same: they decode the same instructions, or the
row is left out with a word.
"""

import argparse
import fnmatch
import glob
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib

# Printing by perf takes minutes on inputs that we take seconds for.
PRINTED = "short"
# Exports, on inputs with many calls: how many million calls a second are asked for.
EXPORTS = {"fxt": 5, "collapsed": 5, "callgrind": 5, "pprof": 5, "xray": 5, "ovni": 5, "html": 5, "chrome": 2}
EXPORTED = ("python3", "gcc", "node", "rounds")
# An input of which nothing else is measured.
EXPORTED_ONLY = "rounds"
# An input of which only one process is decoded.
MIXED = "mixed"
UNRECORDED = "qemu-x86_64, not recorded"
PAGE_KIB, PAGE_MS = 20 << 10, 3000  # how large an HTML report may be, and how long it may take to open
TABLE_BEGIN, TABLE_END = "<!-- make bench -->", "<!-- end of make bench -->"


def run(command):
    """Return: user CPU and wall time in seconds, and what it printed if it printed little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = os.times().elapsed
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True)
    wall = os.times().elapsed - start
    user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}")
    return user, wall, done.stdout


def on_two_threads(command):
    at = command.index("--threads") + 1
    return command[:at] + ["2"] + command[at + 1:]


def first_number(text):
    match = re.match(r"[0-9]+", text)
    return int(match.group()) if match else None


class Input:
    def __init__(self, args, name):
        self.name = name
        self.path = os.path.join(args.dir, name)
        self.memory = self.path + ".mem"  # the directory of drmemtrace
        self.build = args.build
        self.headline = args.headline
        self.has_snapshot = os.path.isdir(self.path)
        self.has_code = os.path.exists(self.path + ".code")
        self.record = None
        # How perf decodes a snapshot; one of another machine with the objects that are in it.
        self.is_of_guest = os.path.isdir(self.path + "/kcore_dir")
        objects = ["--buildid-dir", self.path + "/objects"] if self.is_of_guest else []
        self.perf = ["perf", *objects, "script", "-i", self.path] if self.has_snapshot else None
        if os.path.exists(self.path + ".record"):
            with open(self.path + ".record", encoding="utf-8") as f:
                self.record = [float(seconds) for seconds in f.read().split()]

    def decode(self, kind, *more):
        source = [self.path]
        if not self.has_snapshot:
            source = ["--raw-pt", self.path + ".pt", "--cpu-model", "6/94/3"]
            with open(self.path + ".code", encoding="utf-8") as f:
                pages = f.readline().split()[3]
            source += ["--raw-pages", f"{pages.replace('.bin', '.addr')},{pages}"]
        return [self.build + "/ptdecode", *kind.split(), *more, *source]

    def runs(self):
        """The command that gives our runs of it."""
        return [self.build + "/bench/runs"] + ([self.path + ".pt", self.path + ".code"] if self.has_code
                                               else [self.path])

    def alone(self, kind, *more):
        """The same on one thread."""
        return self.decode(kind, "--threads", "1", *more)

    def measures(self):
        """Each measure: its name, our command, and the peers' by their names."""
        libipt = {f"libipt {kind}": [self.build + "/bench/iptpeer", kind, self.path + ".pt", self.path + ".code"]
                  for kind in ("block", "insn")} if self.has_code else {}
        block = {name: command for name, command in libipt.items() if name == "libipt block"}
        perf = {}
        if self.perf:
            perf["perf, counting"] = self.perf + ["--itrace=e"]
        memory = self.memory
        summary = {"ptdecode, summary": self.alone("summary")}
        calls = [(kind, self.alone(kind, "-o", "/dev/null"), summary) for kind in ("functions", "calls")]
        if self.name == EXPORTED_ONLY:
            yield from calls
            return
        yield "runs", self.runs(), {**libipt, **perf}
        yield "summary", self.alone("summary"), {**block, **perf}
        if not self.headline:
            yield "addresses", self.alone("export addresses", "-o", "/dev/null"), block | self.printing("ip")
        yield "text", self.alone("text", "-o", "/dev/null"), block | self.printing("ip,sym,insn")
        yield "drmemtrace", self.alone("export drmemtrace --compress=none", "-o", memory), block
        if not self.headline:
            yield from calls

    def printing(self, fields):
        if self.headline or not self.perf or not fnmatch.fnmatch(self.name, PRINTED):
            return {}
        return {f"perf, printing {fields}":
                ["sh", "-c", 'exec "$@" >/dev/null', "sh", *self.perf, "--itrace=i1i", "-F", fields]}

    def counted_by_perf(self):
        """About how many instructions perf decodes: it samples one of so many."""
        period = 10000
        samples = run([*self.perf, f"--itrace=i{period}i", "-F", "cpu"])[2]
        return samples.count("\n") * period


def remove_output(command):
    """Remove the directory that the command writes, if it writes one."""
    if "-o" in command and command[command.index("-o") + 1] != "/dev/null":
        shutil.rmtree(command[command.index("-o") + 1], ignore_errors=True)


def measure(ours, peers, n_runs, peer_runs=None):
    """Return: our least user and wall time, and each peer's user time with the number that it printed."""
    best, best_wall, times, counts = None, None, {}, {}
    for i in range(n_runs):
        remove_output(ours)
        user, wall, _ = run(ours)
        best = min(user, best or user)
        best_wall = min(wall, best_wall or wall)
        for peer, command in peers.items() if i < (peer_runs or n_runs) else ():
            user, _, text = run(command)
            times[peer] = min(user, times.get(peer, user))
            counts[peer] = first_number(text) if "iptpeer" in command[0] else None
    return best, best_wall, times, counts


def parts(one, n_runs):
    """Measure parts of a recording against its whole, and against what is asked for: wall time of text, which
    nobody keeps.

    Each is the least of several runs, in ms: the last 1000 instructions of the thread that ran last, and 1 % of
    the time from the middle on. The files are cached.
    """
    def best(*options):
        return min(run(one.decode("text", "-o", "/dev/null", *options))[1] for _ in range(n_runs)) * 1000

    lines = [re.search(r"/([0-9]+) +\[[0-9]+\] +([0-9.]+):", line)
             for line in run(one.decode("text", "--last", "1"))[2].splitlines() if not line.startswith("#")]
    last = max(lines, key=lambda match: float(match.group(2)))
    span = re.search(r"^Time: +([0-9.]+) s", run(one.decode("summary"))[2], re.MULTILINE)
    end, duration = float(last.group(2)), float(span.group(1))
    start = end - duration / 2
    whole = best()
    for what, options, limit in (
            ("the last 1000", ("--last", "1000", "--tid", last.group(1)), 300),
            ("1 % of the time", ("--time", f"{start:.9f},{start + duration / 100:.9f}"), 0.03 * whole + 100)):
        yield what, best(*options), whole, limit


def open_page(page):
    """Return: how many ms a browser takes until it shows the page."""
    with tempfile.TemporaryDirectory() as folder:
        return json.loads(run(["node", "tests/tools/browser.mjs", page, folder])[2])["open_ms"]


def exports(one, n_calls, n_runs):
    """Measure each export: million calls a second of user CPU time on one thread; and what a browser makes of the report."""
    for kind, asked in EXPORTS.items():
        out = one.path + ".out" if kind in ("xray", "ovni") else "/dev/null"
        command = one.alone(kind if kind == "html" else f"export {kind}", "-o", out)
        speed = n_calls / measure(command, {}, n_runs)[0] / 1e6
        remove_output(command)
        yield f"{kind}, calls a second", speed, asked, "what is asked for", speed / asked
    page = one.path + ".html"
    run(one.alone("html", "-o", page))
    size = os.path.getsize(page) / 1024
    yield "html, KiB", size, PAGE_KIB, "what is asked for, KiB", PAGE_KIB / size
    if shutil.which("chromium") and shutil.which("node"):
        best = min(open_page(page) for _ in range(n_runs))
        yield "html in a browser, ms", best, PAGE_MS, "what is asked for, ms", PAGE_MS / best


def size_of_traces(one):
    return sum(os.path.getsize(path) for path in glob.glob(one.memory + "/trace/drmemtrace.*"))


def size_by_zlib(one):
    """How large zlib's level 1 makes the same records, as one stream."""
    size = 0
    for path in glob.glob(one.memory + "/trace/drmemtrace.*"):
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        with zipfile.ZipFile(path) as archive:
            size += sum(len(packer.compress(archive.read(name))) for name in archive.namelist())
        size += len(packer.flush())
    return size


def side_by_side(command, n_runs):
    """Return: the least wall time in which two processes run the same command. They share nothing, so this is what
    two CPUs of this machine gain at best."""
    other = list(command)
    if "-o" in command and command[command.index("-o") + 1] != "/dev/null":
        other[command.index("-o") + 1] += ".other"
    best = None
    for _ in range(n_runs):
        remove_output(command)
        remove_output(other)
        start = os.times().elapsed
        both = [subprocess.Popen(c, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for c in (command, other)]
        if any([process.wait() not in (0, 3) for process in both]):
            sys.exit(f"{' '.join(command)}: one of two fails")
        wall = os.times().elapsed - start
        best = min(wall, best or wall)
    remove_output(other)
    return best


def packed(one):
    """Return: the KiB of the traces, and of zlib's."""
    run(one.alone("export drmemtrace", "-o", one.memory))
    size, least = size_of_traces(one), size_by_zlib(one)
    shutil.rmtree(one.memory)
    return size / 1024, least / 1024


def one_of_many(args, name):
    """Measure how long it takes to decode one process of a CPU that another one had, too, against a recording of that
    program alone."""
    one, alone = Input(args, name), Input(args, "short")
    with open(one.path + ".pid", encoding="utf-8") as f:
        pid = f.read().strip()
    others = os.path.getsize(one.path + "/data") / (1 << 20)
    print(f"{name}: one process in a snapshot of {others:.0f} MiB", flush=True)
    ours, _, times, _ = measure(one.alone("summary", "--pid", pid), {"alone": alone.alone("summary")}, args.runs)
    peer = times["alone"]
    yield name, "--pid, ms", ours * 1000, peer * 1000, "the program alone, ms", peer / ours


def judge(args):
    for name in args.inputs:
        if name == MIXED:
            yield from one_of_many(args, name)
            continue
        one = Input(args, name)
        n_insns = first_number(run(one.runs())[2])
        print(f"{name}: {n_insns / 1e6:.1f} million instructions", flush=True)
        if one.is_of_guest:
            by_perf = one.counted_by_perf()
            print(f"  perf decodes about {by_perf / 1e6:.1f} million")
            if abs(by_perf - n_insns) > n_insns / 50:
                print("  which are not the same: perf is left out")
                one.perf = None
        if one.record:
            ours, unrecorded, minimal = one.record
            for peer, seconds in (UNRECORDED, unrecorded), ("one callback a block, no more", minimal):
                yield name, "record", n_insns / ours / 1e6, n_insns / seconds / 1e6, peer, seconds / ours
        for what, ours, peers in one.measures():
            best, wall, times, counts = measure(ours, peers, args.runs, 1 if args.headline else None)
            for peer, seconds in times.items():
                if counts[peer] not in (None, n_insns):
                    print(f"  {what}: {peer} decodes {counts[peer]} instructions, not {n_insns}")
                else:
                    yield name, what, n_insns / best / 1e6, n_insns / seconds / 1e6, peer, seconds / best
            if args.headline:
                continue
            if what == "calls":
                n_calls = int(re.search(r"^Calls: (\d+)", run(one.decode("functions"))[2], re.M)[1])
                yield name, "calls, calls a second", n_calls / best / 1e6, 5, "what is asked for", n_calls / best / 5e6
                for what, *row in exports(one, n_calls, args.runs) if name in EXPORTED else ():
                    yield name, what, *row
            if what in ("summary", "text", "drmemtrace"):
                two = measure(on_two_threads(ours), {}, args.runs)[1]
                yield (name, f"{what}, 2 threads, wall", n_insns / two / 1e6, n_insns / wall / 1e6,
                       "ptdecode, 1 thread", wall / two)
                two = side_by_side(ours, args.runs) / 2
                yield (name, f"{what}, 2 processes, wall", n_insns / two / 1e6, n_insns / wall / 1e6,
                       "ptdecode, 1 process", wall / two)
        if name == EXPORTED_ONLY or args.headline:
            continue
        remove_output(one.alone("export drmemtrace", "-o", one.memory))
        ours, peer = packed(one)
        yield name, "drmemtrace, KiB", ours, peer, "zlib -1, KiB", ours / peer
        if one.has_snapshot:
            for what, ours, whole, limit in parts(one, args.runs):
                yield name, f"{what}, ms", ours, whole, "text of the whole, ms", whole / ours
                yield name, f"{what}, ms", ours, limit, "what is asked for, ms", limit / ours


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        name = re.search("^model name\\s*: (.*)$", f.read(), re.M)
    return f"Measured on {os.cpu_count()} CPUs: {name[1] if name else 'of no name'}."


def table(rows):
    """A row for each input, with what most users ask: how fast, and how many times as fast as others."""
    columns = (("record", UNRECORDED), ("runs", "libipt block"), ("runs", "libipt insn"), ("runs", "perf, counting"),
               ("summary", "libipt block"), ("text", "libipt block"), ("drmemtrace", "libipt block"))
    lines = ["| Input | Runs, million instructions a second | " +
             " | ".join(f"{what}: {peer}" for what, peer in columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for name in dict.fromkeys(row[0] for row in rows):
        ratios = {(row[1], row[4]): row for row in rows if row[0] == name}
        ours = next((row[2] for row in ratios.values() if row[1] == "runs"), None)
        if ours is None:
            continue
        cells = [f"{ratios[c][5]:.2f}×" if c in ratios else "" for c in columns]
        lines.append(f"| {name} | {ours:.0f} | " + " | ".join(cells) + " |")
    lines += [f"\n`--pid` of a program that shared a CPU: {row[2]:.0f} ms of CPU; alone it takes {row[3]:.0f} ms.\n\n"
              f"{machine()}" for row in rows if row[1] == "--pid, ms"]
    return "\n".join(lines) + "\n"


def put_table(path, rows):
    with open(path, encoding="utf-8") as f:
        before, _, rest = f.read().partition(TABLE_BEGIN + "\n")
    _, _, after = rest.partition(TABLE_END)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"{before}{TABLE_BEGIN}\n{table(rows)}{TABLE_END}{after}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tsv", required=True)
    parser.add_argument("--headline", action="store_true", help="only what the table shows")
    parser.add_argument("--readme", help="a file between whose marks the table is put")
    parser.add_argument("inputs", nargs="+")
    args = parser.parse_args()
    rows = []
    with open(args.tsv, "w", encoding="utf-8") as f:
        f.write("input\tmeasure\tours\tpeer\tpeer's name\tratio\n")
        for name, what, ours, peer, peer_name, ratio in judge(args):
            f.write(f"{name}\t{what}\t{ours:.1f}\t{peer:.1f}\t{peer_name}\t{ratio:.2f}\n")
            f.flush()
            unit = {"ms": "ms ", "KiB": "KiB"}.get(what.rpartition(", ")[2], "M/s")
            print(f"  {what:<34} {ours:8.1f} {unit}  {peer:8.1f} {unit}  {peer_name:<28} {ratio:6.2f} x", flush=True)
            rows.append((name, what, ours, peer, peer_name, ratio))
    if args.readme:
        put_table(args.readme, rows)


if __name__ == "__main__":
    main()
