#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Judge streams of ovni, which export ovni wrote, by the rules of the trace's specification and of ovni's emulator.

usage: ovni.py VERSION DIR CALLS [PRV]

DIR is what was given to -o, CALLS what calls --json wrote of the same recording. Everything that the document of version
1 says of a trace is asserted, section by section; version 3 differs by its metadata and the header of a stream. The calls
of the streams, whose pieces are joined (pieces.py), must be those of CALLS. PRV is a thread.prv that the emulator made of
version 3: one after the other, it must show the functions that are the innermost ones of each thread.
"""
import collections
import json
import os
import re
import struct
import sys

import pieces

LABEL_MAX = 500  # bytes of a name; the emulator refuses more than 511

def names(path):
    return sorted(os.listdir(path))


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


# --- the directory and the metadata -----------------------------------------------------------------------------------

def check_cpus(cpus):
    """`cpus`: the CPUs of the loom; `index` from 0 to N - 1, `phyid` the operating system's number."""
    assert [cpu["index"] for cpu in cpus] == list(range(len(cpus))), cpus
    assert all(sorted(cpu) == ["index", "phyid"] and isinstance(cpu["phyid"], int) for cpu in cpus), cpus
    assert len({cpu["phyid"] for cpu in cpus}) == len(cpus), cpus
    return len(cpus)


def find_streams_1(top):
    """Version 1: a directory for each loom and process, which has its metadata and the traces of its threads."""
    streams, n_cpus, apps = [], None, set()
    assert names(top) == ["ovni"], "the complete trace is stored in a top-level directory named ovni"
    for loom in names(top + "/ovni"):
        if not os.path.isdir(f"{top}/ovni/{loom}"):
            continue  # what the emulator wrote
        assert loom.startswith("loom."), loom
        with_cpus = 0
        for proc in names(f"{top}/ovni/{loom}"):
            pid = int(re.fullmatch(r"proc\.([0-9]+)", proc)[1])
            files = names(f"{top}/ovni/{loom}/{proc}")
            metadata = load(f"{top}/ovni/{loom}/{proc}/metadata.json")
            assert metadata["version"] == 1 and isinstance(metadata["app_id"], int), metadata
            assert metadata["app_id"] not in apps, metadata
            apps.add(metadata["app_id"])
            assert set(metadata) <= {"version", "app_id", "rank", "nranks", "cpus"}, metadata
            if "cpus" in metadata:
                with_cpus += 1
                n_cpus = check_cpus(metadata["cpus"])
            for name in files:
                if name != "metadata.json":
                    tid = int(re.fullmatch(r"thread\.([0-9]+)", name)[1])
                    streams.append((f"{top}/ovni/{loom}/{proc}/{name}", pid, tid))
        assert with_cpus == 1, "only one process in the loom must contain the CPUs"
    return streams, n_cpus, {}


def find_streams_3(top):
    """Version 3: a directory for each thread, which has stream.json and stream.obs."""
    streams, n_cpus, marks, apps = [], None, {}, {}
    for path, _, files in sorted(os.walk(top + "/ovni")):
        if "stream.json" not in files:
            continue
        assert sorted(files) == ["stream.json", "stream.obs"], files
        metadata = load(path + "/stream.json")
        ovni = metadata["ovni"]
        assert metadata["version"] == 3 and ovni["part"] == "thread" and ovni["finished"] == 1, ovni
        assert ovni["require"] == {"ovni": "1.1.0"} and ovni["app_id"] > 0 and ovni["tid"] > 0 and ovni["pid"] > 0, ovni
        assert all(isinstance(ovni["lib"][key], str) for key in ("version", "commit")), ovni
        assert path == f"{top}/ovni/loom.{ovni['loom']}/proc.{ovni['pid']}/thread.{ovni['tid']}", path
        assert apps.setdefault(ovni["pid"], ovni["app_id"]) == ovni["app_id"], "the application is the process's"
        if "loom_cpus" in ovni:
            assert n_cpus is None
            n_cpus = check_cpus(ovni["loom_cpus"])
        for number, mark in ovni.get("mark", {}).items():
            assert 0 <= int(number) < 100 and mark["chan_type"] in ("single", "stack"), number
            assert all(len(text.encode()) <= 511 for text in [mark["title"], *mark["labels"].values()])
            marks[int(number)] = (mark["chan_type"], {int(value): text for value, text in mark["labels"].items()})
        streams.append((path + "/stream.obs", ovni["pid"], ovni["tid"]))
    assert len(set(apps.values())) == len(apps), apps
    return streams, n_cpus, marks


# --- the events -------------------------------------------------------------------------------------------------------

def read_events(data):
    """Events joined one after the other: 4 bits of flags, 4 of the size of the payload, MCV, clock, payload, data."""
    at, last = 0, 0
    while at < len(data):
        flags, code = data[at] >> 4, data[at] & 15
        size = code + 1 if code else 0  # 0x0 for no payload, or v for v + 1 bytes
        mcv = data[at + 1:at + 4].decode("ascii")
        clock, = struct.unpack_from("<Q", data, at + 4)
        payload = data[at + 12:at + 12 + size]
        assert len(payload) == size and clock >= last, (at, mcv, clock, last)
        at, last = at + 12 + size, clock
        jumbo = None
        if flags == 1:
            assert size == 4, (at, mcv)
            n, = struct.unpack("<I", payload)
            jumbo = data[at:at + n]
            assert len(jumbo) == n, (at, mcv)
            at += n
        else:
            assert flags == 0, (at, flags)
        yield clock, mcv, payload, jumbo


def is_gap(name):
    return name.startswith("gap: ") or name == "out of scope"


class Thread:
    """What the emulator knows of a thread, and the calls in its stream."""

    def __init__(self, tid, marks):
        self.tid, self.marks = tid, marks
        self.state, self.cpu = None, None
        self.stacks = collections.defaultdict(list)
        self.types, self.tasks = {}, {}
        self.steps, self.depths, self.gaps, self.stays, self.since, self.shown = [], [], 0, [], None, []

    def run(self, clock):
        assert self.state != "running"
        self.state, self.since = "running", clock

    def stop(self, clock, state):
        if self.state == "running" and self.cpu >= 0:
            self.stays.append((self.cpu, self.since, clock))
        self.state = state

    def life(self, clock, value, payload):
        if value == "x":
            assert self.state is None and len(payload) == 16
            self.cpu, creator, _ = struct.unpack("<iiQ", payload)
            assert creator == -1
            self.run(clock)
            return
        assert payload == b""
        if value == "p":
            assert self.state in ("running", "cooling"), self.state
            self.stop(clock, "paused")
        elif value == "w":
            assert self.state == "paused", self.state
            self.state = "warming"
        elif value == "r":
            assert self.state in ("paused", "warming"), self.state
            self.run(clock)
        else:
            assert value == "e" and self.state in ("running", "cooling"), (value, self.state)
            self.stop(clock, "dead")

    def enter(self, clock, kind, key, name):
        self.stacks[kind].append((key, name))
        assert len(self.stacks[kind]) <= 512
        if not is_gap(name):
            self.steps.append((clock, self.tid, "enter", name))
            self.depths.append((name, len(self.stacks[kind]) - 1))
        if kind == 0:
            self.shown.append(key)

    def leave(self, clock, kind, key):
        top, name = self.stacks[kind].pop()
        assert top == key, (clock, top, key)
        if is_gap(name):
            self.gaps += 1
        else:
            self.steps.append((clock, self.tid, "leave", name))
        if kind == 0 and self.stacks[kind]:
            self.shown.append(self.stacks[kind][-1][0])

    def mark(self, clock, value, payload):
        number, kind = struct.unpack("<qi", payload)
        chan, labels = self.marks[kind]
        assert number != 0 and (chan == "single") == (value == "="), (value, kind, number)
        if value == "[":
            self.enter(clock, kind, number, labels[number])
        elif value == "]":
            self.leave(clock, kind, number)

    def task(self, clock, mcv, payload, jumbo):
        assert self.state == "running", (clock, mcv)
        if mcv == "VYc":
            kind, = struct.unpack_from("<I", jumbo)
            assert jumbo.endswith(b"\0") and jumbo.count(b"\0", 4) == 1 and kind not in self.types
            self.types[kind] = jumbo[4:-1].decode()
        elif mcv == "VTc":
            task, kind = struct.unpack("<II", payload)
            assert task not in self.tasks and kind in self.types
            self.tasks[task] = self.types[kind]
        elif mcv == "VTx":
            task, = struct.unpack("<I", payload)
            self.enter(clock, 0, task, self.tasks[task])
        else:
            assert mcv == "VTe", mcv
            self.leave(clock, 0, *struct.unpack("<I", payload))

    def take(self, clock, mcv, payload, jumbo):
        if mcv[:2] == "OH":
            self.life(clock, mcv[2], payload)
        elif mcv == "OAs":
            assert self.state in ("running", "warming")
            self.cpu, = struct.unpack("<i", payload)
        elif mcv[:2] == "OM":
            self.mark(clock, mcv[2], payload)
        else:
            self.task(clock, mcv, payload, jumbo)


def check_stays(threads, n_cpus):
    """One thread runs on a CPU at a time."""
    by_cpu = collections.defaultdict(list)
    for thread in threads:
        for cpu, begin, end in thread.stays:
            assert 0 <= cpu < n_cpus, cpu
            by_cpu[cpu].append((begin, end))
    for stays in by_cpu.values():
        stays.sort()
        for (_, end), (begin, _) in zip(stays, stays[1:]):
            assert begin > end, (end, begin)
    return sum(map(len, by_cpu.values()))


# --- the comparison ---------------------------------------------------------------------------------------------------

def shown_name(row):
    return row["function"].encode()[:LABEL_MAX].decode(errors="replace")


def check_calls(threads, path):
    rows = load(path)["calls"]
    ours = [row for row in rows if "gap" not in row]
    split = pieces.check(ours, [thread.steps for thread in threads], shown_name)
    # Where the lowest function is the first one, and no gap is between, the depth is that of the tree.
    if len(ours) == len(rows) and not split:
        lowest = collections.defaultdict(int)
        for row in ours:
            lowest[row["tid"]] = min(lowest[row["tid"]], row["depth"])
        expected = collections.Counter((row["tid"], shown_name(row), row["depth"]) for row in ours if not lowest[row["tid"]])
        counted = collections.Counter((thread.tid, name, depth) for thread in threads for name, depth in thread.depths
                                      if not lowest[thread.tid])
        assert expected == counted, "depth"
    return f"{len(ours)} calls{split}"


def check_prv(threads, path):
    """What the emulator shows of mark type 0, whose number is 100; 0 is nothing, as when the thread does not run."""
    found = collections.defaultdict(list)
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.split(":")
            if fields[0] == "2" and fields[6] == "100" and fields[7] != "0\n":
                found[fields[4]].append(int(fields[7]))
    once = lambda values: tuple(value for i, value in enumerate(values) if i == 0 or values[i - 1] != value)
    expected = collections.Counter(once(thread.shown) for thread in threads if thread.shown)
    assert expected == collections.Counter(map(once, found.values())), "thread.prv"


def main():
    version, top, calls, prv = int(sys.argv[1]), sys.argv[2], sys.argv[3], (sys.argv[4:] or [None])[0]
    streams, n_cpus, marks = (find_streams_1 if version == 1 else find_streams_3)(top)
    threads, n_events = [], 0
    assert len({tid for _, _, tid in streams}) == len(streams)
    for path, _, tid in streams:
        with open(path, "rb") as file:
            data = file.read()
        if version == 3:
            assert data[:8] == b"ovni\1\0\0\0", data[:8]
            data = data[8:]
        thread = Thread(tid, marks)
        for clock, mcv, payload, jumbo in read_events(data):
            thread.take(clock, mcv, payload, jumbo)
            n_events += 1
        assert thread.state == "dead" and not any(thread.stacks.values()), (path, thread.state)
        threads.append(thread)
    n_stays = check_stays(threads, n_cpus)
    calls_said = check_calls(threads, calls)
    if prv:
        check_prv(threads, prv)
    print(f"version {version}: {len(streams)} streams, {n_events} events: {calls_said}, "
          f"{sum(thread.gaps for thread in threads)} gaps, {n_stays} stays on {n_cpus} CPUs")


if __name__ == "__main__":
    main()
