#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare an export with what calls --json says of the same recording.

usage: exported.py CALLS FORMAT EXPORT [ARG]...

CALLS is what calls --json wrote, from which the tree of calls is made anew: the calls that a function made come before
it, one deeper. The arguments: of collapsed, the last name of all threads; of fxt and chrome, the command that runs
Perfetto's trace processor, up to the trace; of html, what functions --json wrote, the recording, ptdecode, and the
command that runs report.mjs, up to the page: what the page says that it leaves out is not compared; of what begins
with "speedscope_", the command that runs speedscope's importer, up to the file; of pprof_go, none.
"""
import collections
import gzip
import json
import re
import subprocess
import sys


NAME_MAX = 1024  # bytes of a name, but for JSON
PAGE_NAME_MAX = 512  # the same of the page, which says that it has cut a name


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


def collapse(roots, head, cost, name=lambda row: row["function"]):
    stacks = collections.Counter()
    waiting = [(root, head) for root in roots]
    while waiting:
        row, above = waiting.pop()
        stack = above + ";" + name(row).replace(";", ":")
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


def read_lines(command):
    """The lines of JSON that the command writes."""
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def shown_name(row):
    """The name of the row's function, as exports have it."""
    return row["function"].encode()[:NAME_MAX].decode(errors="replace")


def whole_name(row):
    """The same in JSON."""
    return row["function"]


def page_name(row):
    """The same in the page."""
    cut = row["function"].encode()[:PAGE_NAME_MAX].decode(errors="ignore")
    return row["function"] if len(row["function"].encode()) <= PAGE_NAME_MAX else cut + "…"


def stacks_of(roots):
    """Of each stack the calls, the time and the instructions of its innermost function itself."""
    stacks = collections.defaultdict(lambda: [0, 0, 0])
    waiting = [(root, ()) for root in roots]
    while waiting:
        row, above = waiting.pop()
        stack = above + (shown_name(row),)
        for i, cost in enumerate((1, row["duration_self"], row["instructions_self"])):
            stacks[stack][i] += cost
        waiting += [(inner, stack) for inner in row["inner"]]
    return {stack: tuple(costs) for stack, costs in stacks.items()}


def fields(message):
    """The fields of a message of protocol buffers: the number of each, and a number or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 0x7f) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = number()
        assert key & 7 in (0, 2), key
        value = number()
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
            assert at <= len(message)
        yield key >> 3, value


def one(message):
    """The fields of a message in which none comes twice, by their numbers."""
    found = dict(fields(message))
    assert len(found) == len(list(fields(message))), found
    return found


def packed(message):
    """The numbers of a repeated field."""
    numbers, shift = [0], 0
    for byte in message:
        numbers[-1] |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(0)
            shift = 0
    return numbers[:-1]


def check_pprof(_, roots, export):
    profile = collections.defaultdict(list)
    with gzip.open(export) as file:
        for field, value in fields(file.read()):
            profile[field].append(value)
    texts = [text.decode() for text in profile[6]]
    assert texts[0] == "", texts[0]
    types = [tuple(texts[one(value)[i]] for i in (1, 2)) for value in profile[1]]
    # A log of calls has no instructions.
    assert types == [("calls", "count"), ("time", "nanoseconds"), ("instructions", "count")][:len(types)], types
    assert texts[profile[14][0]] == "time"
    mappings = {one(value)[1]: texts[one(value)[5]] for value in profile[3]}
    functions = {one(value)[1]: texts[one(value)[2]] for value in profile[5]}
    locations = {one(value)[1]: functions[one(one(value)[4])[1]] for value in profile[4]}
    assert {one(value)[2] for value in profile[4]} == set(mappings)
    found = collections.defaultdict(lambda: (0,) * len(types))
    labels = collections.Counter()
    for sample in map(one, profile[2]):
        stack = tuple(locations[i] for i in reversed(packed(sample[1])))
        found[stack] = tuple(a + b for a, b in zip(found[stack], packed(sample[2])))
        label = one(sample[3])
        assert texts[label[1]] == "thread"
        labels[texts[label[2]]] += 1
    expected = {stack: costs[:len(types)] for stack, costs in stacks_of(roots).items()}
    assert found == expected, list(set(found.items()) ^ set(expected.items()))[:5]
    return f"{len(found)} stacks, {len(functions)} functions of {len(mappings)} objects, {dict(labels)}"


def check_pprof_go(_, roots, export):
    """The same, read by Go's pprof."""
    run = subprocess.run(["go", "tool", "pprof", "-raw", export], check=True, capture_output=True, text=True)
    assert not run.stderr, run.stderr
    samples, locations = re.fullmatch(
        r"PeriodType:.*\nPeriod: 0\nSamples:\ncalls/count time/nanoseconds\[dflt\] instructions/count\n(.*)"
        r"\nLocations\n(.*)\nMappings\n.*", run.stdout, re.S).groups()
    names = dict(re.findall(r"^ +([0-9]+): 0x[0-9a-f]+ M=[0-9]+ (.*) \S*:[0-9]+ s=[0-9]+\(\)$", locations, re.M))
    found = collections.defaultdict(lambda: (0, 0, 0))
    for calls, time, insns, stack in re.findall(r"^ +([0-9]+) +([0-9]+) +([0-9]+): ([0-9 ]+) $", samples, re.M):
        stack = tuple(names[i] for i in reversed(stack.split()))
        found[stack] = tuple(a + b for a, b in zip(found[stack], map(int, (calls, time, insns))))
    expected = stacks_of(roots)
    assert found == expected, list(set(found.items()) ^ set(expected.items()))[:5]
    return f"{len(found)} stacks"


def check_speedscope(rows, _, export, *command):
    profiles = read_lines([*command, "calls", export])
    assert {profile["unit"] for profile in profiles} == {"nanoseconds"}
    starts = {}
    with open(export, encoding="utf-8") as file:
        for profile in json.load(file)["profiles"]:
            assert profile["name"] not in starts
            starts[profile["name"]] = profile["startValue"]
    found = collections.Counter((name, starts[profile["name"]] + t, duration) for profile in profiles
                                for name, t, duration in profile["calls"] if not name.startswith("gap: "))
    expected = collections.Counter((name, t, duration) for name, t, duration, _ in spans(rows, whole_name) if duration > 0)
    gaps = sum(name.startswith("gap: ") for profile in profiles for name, *_ in profile["calls"])
    assert sum(profile["n"] for profile in profiles) - gaps == len(rows)
    assert found == expected, (list((found - expected).items())[:5], list((expected - found).items())[:5])
    tracks = {name.split()[-1] for name in starts}
    assert {f"{row['pid']}/{row['tid']}" for row in rows} <= tracks, tracks
    return f"{sum(found.values())} calls that took time, {gaps} gaps on {len(profiles)} tracks"


def check_speedscope_stacks(roots, export, command, cost, head):
    """The stacks of an export that speedscope imports, too."""
    found = collections.Counter()
    for stack, value in read_lines([*command, "stacks", export])[0]["stacks"]:
        found[tuple(stack[head:])] += value
    expected = collections.Counter({stack: costs[cost] for stack, costs in stacks_of(roots).items() if costs[cost]})
    assert found == expected, (list((found - expected).items())[:5], list((expected - found).items())[:5])
    return f"{len(found)} stacks"


def check_speedscope_collapsed(_, roots, export, *command):
    return check_speedscope_stacks(roots, export, command, 1, 1)


def check_speedscope_pprof(_, roots, export, *command):
    return check_speedscope_stacks(roots, export, command, 1, 0)


def query(command, export, *queries):
    """The rows of each query that Perfetto's trace processor answers."""
    return read_lines([*command, export, *queries])


def spans(rows, name=shown_name):
    """What a viewer shows of each call: an outer function begins earlier than what it contains."""
    for row in rows:
        earlier = -row["depth"] if row["entered_by"] in ("inference", "resumption") else 0
        yield name(row), row["t"] - earlier, row["duration"] + earlier, row["instructions"]


def check_perfetto(rows, export, command, name=shown_name):
    complaints, slices, parents, threads, running, others = query(
        command, export,
        "select name, value from stats where value > 0 and severity != 'info'",
        "select name, ts, dur, coalesce(extract_arg(arg_set_id, 'instructions'), "
        "extract_arg(arg_set_id, 'args.instructions')) from slice where category in "
        "('user', 'kernel', 'jit')",
        "select p.name, s.name, count(*) from slice s join slice p on s.parent_id = p.id "
        "where s.category in ('user', 'kernel', 'jit') group by 1, 2",
        "select distinct t.tid, t.name, p.pid, p.name from slice s join thread_track k on s.track_id = k.id "
        "join thread t using (utid) join process p using (upid)",
        "select count(*), sum(dur), min(ts), max(ts + dur) from sched_slice join thread using (utid) where tid > 0",
        "select category, count(*) from slice group by 1")
    assert not complaints, complaints
    found, expected = collections.Counter(map(tuple, slices)), collections.Counter(spans(rows, name))
    assert found == expected, (list((found - expected).items())[:5], list((expected - found).items())[:5])
    inner = collections.Counter((name(row), name(below)) for row in rows for below in row["inner"])
    found = collections.Counter({(above, below): n for above, below, n in parents})
    assert found == inner, (list((found - inner).items())[:5], list((inner - found).items())[:5])
    tids = {row["tid"] for row in rows}
    assert tids <= {tid for tid, *_ in threads}, (tids, threads)
    total = sum(dur for _, _, dur, _ in slices)
    return f"{len(slices)} slices of {total} ns, {threads}, running {running}, {others}"


def check_fxt(rows, _, export, *command):
    return check_perfetto(rows, export, command)


def check_chrome(rows, _, export, *command):
    with open(export, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return f"{len(events)} events, " + check_perfetto(rows, export, command, whole_name)


def annotated(export, *options):
    """The costs of each function, time and instructions, that callgrind_annotate says."""
    out = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", *options, export], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    lines = re.findall(r"^ *([0-9,]+|\.)(?: +([0-9,]+|\.))? +\?\?\?:(.*) \[(.*)\]$", out, re.M)
    costs = collections.defaultdict(lambda: [0, 0])
    for *numbers, function, _ in lines:
        for i, number in enumerate(numbers):
            costs[function][i] += int(number.replace(",", "").replace(".", "") or 0)
    return costs


def annotated_threads(export):
    with open(export, encoding="utf-8") as file:
        return re.findall(r"^fn=\([0-9]+\) \[thread (.*)\]$", file.read(), re.M)


def check_callgrind(rows, roots, export):
    selfs, totals = (collections.defaultdict(lambda: [0, 0]) for _ in range(2))
    for row in rows:
        for i, key in enumerate(("duration_self", "instructions_self")):
            selfs[shown_name(row)][i] += row[key]
    # A function costs what all its calls do, but those that it made itself, directly or not. Several may have one name.
    waiting = [(root, frozenset()) for root in roots]
    while waiting:
        row, above = waiting.pop()
        function = (row["object"], row["address"], row["function"])
        if function not in above:
            for i, key in enumerate(("duration_", "instructions_")):
                totals[shown_name(row)][i] += whole(row, key + "self")
        waiting += [(inner, above | {function}) for inner in row["inner"]]
    threads = {f"[thread {name}]" for name in annotated_threads(export)}
    drop = lambda costs: {function: tuple(cost) for function, cost in costs.items() if any(cost)}
    for expected, options in ((selfs, ()), (totals, ("--inclusive=yes",))):
        found = {name: cost for name, cost in annotated(export, *options).items() if name not in threads}
        assert drop(found) == drop(expected), [(f, found[f], expected[f]) for f in {**found, **expected}
                                               if tuple(found[f]) != tuple(expected[f])][:5]
    summed = annotated(export, "--inclusive=yes")
    assert sum(summed[name][0] for name in threads) == sum(row["duration_self"] for row in rows)
    return f"{len(selfs)} functions, {len(threads)} names of threads"


def functions_of(path):
    """What functions --json says of each function, as report.mjs names it."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    rows = []
    for row in found["functions"]:
        costs = {key: row.get(key, {"self": 0, "total": 0}) for key in ("time", "instructions")}
        rows.append((page_name(row), row["object"], row["address"], row["calls"], row["partial"],
                     *(costs[key].get(part) or 0 for key in costs for part in ("self", "total", "min", "median", "p99", "max"))))
    return found, collections.Counter(rows)


def check_html(rows, roots, export, functions, recording, ptdecode, *command):
    said = json.loads(subprocess.run([*command, export], check=True, stdout=subprocess.PIPE, text=True).stdout)
    left_out = {key: n for key, n in said["left_out"].items() if n}
    found = collections.Counter(tuple(span[:4]) for span in said["spans"])
    expected = collections.Counter(spans(rows, page_name))
    assert found == expected or {"resolution", "deep", "tracks", "outer"} & set(left_out), (
        list((found - expected).items())[:5], list((expected - found).items())[:5])
    for i, cost in ((1, "duration_self"), (2, "instructions_self")) if not {"nodes", "stacks"} & set(left_out) else ():
        # Functions of several objects may have one name.
        found, expected = collections.Counter(), collapse(roots, "all", cost, page_name)
        for stack in said["stacks"]:
            found[stack[0]] += stack[i]
        assert +found == expected, (list((found - expected).items())[:5], list((expected - found).items())[:5])
    wanted, expected = functions_of(functions)
    found = collections.Counter(
        (f["name"], f["object"], f["address"], f["calls"], f["partial"],
         *(f[key][part] for key in ("time", "instructions") for part in ("self", "total", "min", "median", "p99", "max")))
        for f in said["functions"])
    assert found == expected or "functions" in left_out, (list((found - expected).items())[:3], list((expected - found).items())[:3])
    assert (said["calls"], said["partial"]) == (wanted["calls"], wanted["partial"])
    n_slowest = 0
    whole_names = {page_name(row): row["function"] for row in wanted["functions"]}
    for name, slowest in said["slowest"]:
        # By its name latency takes what was inlined, too.
        if f"{whole_names[name]} (inlined)" in whole_names.values():
            continue
        out = subprocess.run([ptdecode, "latency", "--json", "--function=" + whole_names[name], recording], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        wanted = json.loads(out)["slowest"][:5]
        assert len(slowest) == len(wanted), (name, slowest, wanted)
        for found, one in zip(slowest, wanted):
            # A further stack of a process has a track that is no thread's.
            tid = None if found[3] is None else one["tid"]
            assert found == [one["t"], one["duration"], one["instructions"], tid], (name, found, one)
        n_slowest += len(slowest)
    with open(f"{recording}/manifest", encoding="utf-8") as file:
        taken = int(dict(line.rstrip("\n").split("=", 1) for line in file)["clock_ns"])
    end, text = said["moments"][-1]
    assert text.startswith("the trace ends"), text
    if taken <= int(end):
        assert [str(taken), "the snapshot was taken"] in said["moments"], (taken, said["moments"])
    else:
        assert re.search("; the snapshot was taken .* later$", text), (taken, said["moments"])
    others = collections.Counter(other[1] for other in said["others"])
    return f"{len(said['functions'])} functions, {len(said['stacks'])} stacks, {n_slowest} slowest executions, {dict(others)}, left out: {left_out or 'nothing'}"


def whole(row, key):
    """What the call cost with all that it called."""
    if "whole " + key not in row:
        row["whole " + key] = row[key] + sum(whole(inner, key) for inner in row["inner"])
    return row["whole " + key]


def main():
    calls, kind, export, *args = sys.argv[1:]
    rows, roots = load_calls(calls)
    print(f"{kind}: {len(rows)} calls,", globals()["check_" + kind](rows, roots, export, *args))


main()
