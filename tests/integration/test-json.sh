#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The JSON of each format that has it: Python reads it, and it says what the other formats say of the same
# recording.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

start_ptd
record ls ls -l /usr
args=()
for verb in summary calls functions stacks branches; do
	args+=(--also "$verb --json -o $T/$verb.json")
done
"$O/ptdecode" text -o "$T/text" "${args[@]}" --also "calls -o $T/calls" "$T/ls" || fail "ptdecode"
"$O/ptdecode" latency --function=strlen --json -o "$T/latency.json" "$T/ls" || fail "ptdecode latency"
"$O/ptdecode" calls --max-depth=4 --json -o "$T/few.json" "$T/ls" || fail "ptdecode calls"

# Braces in the tree are in pairs.
awk '/^#/ { next } / {$| { \/\// { n++; opened++ } / } \/\// { n-- } n < 0 { exit 1 } END { exit n != 0 || opened < 1000 }' \
	"$T/calls" || { tail "$T/calls"; fail "the tree is not balanced"; }

python3 - "$T" <<'EOF' || fail "the documents are not what they should be"
import json, re, sys

def load(name, format=None):
    with open(f"{sys.argv[1]}/{name}.json") as file:
        document = json.load(file)
    assert document["format"] == (format or name), document["format"]
    return document

# Instructions, and conditional jumps, by the text.
n = n_cond = n_indirect = 0
for line in open(f"{sys.argv[1]}/text", errors="replace"):
    if line.startswith("#"):
        continue
    n += 1
    code, mnemonic = re.search(r": +[0-9a-f]+ ([0-9a-f]+) +(?:(?:bnd|notrack|data16|cs|ds) )*(\S+)", line).groups()
    if re.fullmatch(r"j(?!mp).*|loop.*", mnemonic):
        n_cond += 1
    elif re.match(r"(f2|3e|66|4[0-9a-f])*ff", code) and mnemonic in ("jmp", "call"):
        n_indirect += 1

summary = load("summary")
assert summary["clock"] == "ns" and summary["instructions"] == n > 100000, summary["instructions"]
for table in "processes", "threads", "objects", "symbols", "cpus":
    assert sum(row["instructions"] for row in summary[table]) == n, table

rows = load("branches")["branches"]
executed = {"cond": 0, "jump": 0, "call": 0}
for row in rows:
    executed[row["kind"]] += row["executed"]
    ways = sum(row.get(way, 0) for way in ("taken", "not_taken", "others", "unknown"))
    assert row["executed"] == ways + sum(t["executed"] for t in row.get("targets", [])), row
assert executed["cond"] == n_cond > 1000, (executed, n_cond)
assert executed["jump"] + executed["call"] == n_indirect > 100, (executed, n_indirect)
unknown = sum(row["unknown"] for row in rows)
assert unknown * 1000 < n_cond, unknown
# Each instruction belongs to a call; the calls nest; and the functions have what their calls have.
calls = [row for row in load("calls")["calls"] if "gap" not in row]
assert sum(row["instructions_self"] for row in calls) == n
inner = {}
for row in calls:
    below = inner.setdefault(row["stack"], [])
    while below and below[-1][0] > row["depth"]:
        assert below[-1][0] == row["depth"] + 1, row
        row["instructions_self"] += below.pop()[1]
    assert row["instructions_self"] == row["instructions"], row
    below.append((row["depth"], row["instructions"]))

# Code of what was inlined that goes on is no other call.
counted = [c for c in calls if c["entered_by"] != "reentry"]
functions = load("functions")
assert functions["calls"] == len(counted) == sum(row["calls"] for row in functions["functions"])
assert sum(row["instructions"]["self"] for row in functions["functions"]) == n
for row in functions["functions"]:
    mine = [c for c in counted if (c["function"], c["object"], c["address"]) == (row["function"], row["object"], row["address"])]
    assert len(mine) == row["calls"], row
    cost = row["instructions"]
    if not row["partial"] and mine:
        costs = sorted(c["instructions"] for c in mine)
        assert (cost["min"], cost["max"]) == (costs[0], costs[-1]), row
        for name, part in ("median", 0.5), ("p99", 0.99):
            exact = costs[-int(-len(costs) * part // 1) - 1]
            assert abs(cost[name] - exact) <= exact / 64, (row, exact)

few = load("few", "calls")
assert sum(row["left_out"] + 1 for row in few["calls"]) + few["left_out"] == len(calls)
assert max(row["depth"] for row in few["calls"]) == 4

latency = load("latency")
[thread] = load("stacks")["threads"]
assert thread["state"] == "in a system call" and thread["instructions"] == n, thread
assert "exit" in thread["frames"][0]["function"] and len(thread["frames"]) > 3, thread
print(f"{len(calls)} calls of {len(functions['functions'])} functions, {latency['executions']} of strlen")
print(f"{n} instructions, {n_cond} conditional and {n_indirect} indirect branches, {unknown} ways not known")
EOF
