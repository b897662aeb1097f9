#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Static probes: a program's own count of each is how often it is seen to be executed, by both engines and any
# number of threads, and so is that of the exceptions of C++; nobody has enabled any. One that a semaphore guards
# is told from one whose semaphore nothing reads. readelf finds the same probes in the files.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

# counts FILE: "PROVIDER:NAME COUNT" of each probe of the test or of C++, by the JSON
counts() {
	python3 - "$1" <<'EOF'
import collections, json, sys
document = json.load(open(sys.argv[1]))
counts = collections.Counter()
for row in document["probes"]:
    counts[row["provider"] + ":" + row["name"]] += row["executed"]
assert len(document["executions"]) == document["executed"] == sum(counts.values())
times = [row["t"] for row in document["executions"]]
assert times == sorted(times)
for i, row in enumerate(document["probes"]):
    mine = [e["t"] for e in document["executions"] if e["probe"] == i]
    assert len(mine) == row["executed"], row
    assert not mine or (mine[0], mine[-1]) == (row["first"], row["last"]), row
    assert not (row["guarded"] and mine), row
    if row["name"] in ("guarded", "unread"):
        assert row["guarded"] == (row["name"] == "guarded") and row["arguments"].startswith("-4@"), row
print("\n".join(f"{name} {n}" for name, n in sorted(counts.items())))
EOF
}

start_ptd
record probes "$O/targets/probes.c"
record throw "$O/targets/throw.cc"
cat "$T/probes.out"
for options in "-e flow --threads 1" "-e flow --threads 3" "-e insn"; do
	# shellcheck disable=SC2086
	"$O/ptdecode" probes --json $options -o "$T/json" "$T/probes" || fail "probes $options"
	counts "$T/json" | diff "$T/probes.out" - || fail "$options"
	# shellcheck disable=SC2086
	"$O/ptdecode" probes --json $options -o "$T/json" "$T/throw" || fail "throw $options"
	counts "$T/json" | diff - <(printf '%s\n' "libstdcxx:catch 1333" "libstdcxx:rethrow 333" "libstdcxx:throw 1000") ||
		fail "exceptions, $options"
done

# Each is a line of text and of calls, behind the function that it is in; a part of the trace has its own.
"$O/ptdecode" text --also "calls -o $T/calls" -o "$T/text" "$T/probes" || fail "text"
n=$(awk '{ n += $2 } END { print n }' "$T/probes.out")
[[ $(grep -c 'probe: test:.*, ip ' "$T/text") == "$n" ]] || fail "text"
[[ $(grep -c '// probe test:' "$T/calls") == "$n" ]] || fail "calls"
awk '/ nop /{ nops[$5] } / probe: /{ hits[$NF] } END { for (i in hits) if (!(i in nops)) exit 1 }' "$T/text" ||
	fail "a probe that is no nop"
tid=$(sed -n 's/.* \([0-9]*\/[0-9]*\) .*probe: test:done.*/\1/p' "$T/text" | sed 's/.*\///' | tail -1)
"$O/ptdecode" probes --tid "$tid" -o "$T/one" "$T/probes" || fail "--tid"
grep -q "^ *1 .*test:done in work" "$T/one" || { cat "$T/one"; fail "one thread's"; }

# readelf reads the notes itself.
record python python3 -c pass
for name in probes throw python; do
	"$O/ptdecode" probes --json -o "$T/json" --also "summary --json -o $T/summary" "$T/$name" 2>/dev/null || [[ $? == 4 ]] || fail "$name"
	python3 - "$T" <<'EOF'
import json, sys
load = lambda name: json.load(open(f"{sys.argv[1]}/{name}"))
rows = sorted(" ".join(row[key] for key in ("object", "provider", "name", "address")) for row in load("json")["probes"])
files = [row["object"] for row in load("summary")["objects"] if (row["object"] or "").startswith("/")]
for name, lines in ("ours", rows), ("objects", files):
    with open(f"{sys.argv[1]}/{name}", "w") as file:
        file.writelines(line + "\n" for line in lines)
EOF
	while read -r file; do
		readelf -nW "$file" 2>/dev/null | awk -v file="$file" '
			/ Provider: / { provider = $NF } / Name: / { name = $NF }
			/ Location: / { sub(/^0x0*/, "0x", $2); sub(/,/, "", $2); print file, provider, name, $2 }'
	done <"$T/objects" | LC_ALL=C sort >"$T/notes"
	diff "$T/notes" "$T/ours" || fail "$name: not as readelf has them"
	[[ -s $T/notes || $name == python ]] || fail "$name: none"
	echo "$name: $(wc -l <"$T/notes") probes in $(wc -l <"$T/objects") objects, as readelf has them"
done
