#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The JSON of each format that has it: Python reads it, and it says what the other formats say of the same
# recording.
. "$(dirname "$0")/common.sh"
need qemu-x86_64 python3

start_ptd
record ls ls -l /usr
args=()
for format in summary branches; do
	args+=(-f "$format:json" -o "$T/$format.json")
done
"$O/ptdecode" -f text -o "$T/text" "${args[@]}" "$T/ls" || fail "ptdecode"

python3 - "$T" <<'EOF' || fail "the documents are not what they should be"
import json, re, sys

def load(name):
    with open(f"{sys.argv[1]}/{name}.json") as file:
        document = json.load(file)
    assert document["format"] == name, document["format"]
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
print(f"{n} instructions, {n_cond} conditional and {n_indirect} indirect branches, {unknown} ways not known")
EOF
