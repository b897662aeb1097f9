#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Inlined functions are calls: of a program whose functions count themselves, most counts are equal, by both engines
# and any number of threads; without them, all is as it would be.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 g++

# build NAME COMPILER OPTION...
build() {
	local name=$1
	shift
	"$@" -g -o "$T/$name" tests/targets/inlines.cc || fail "cannot compile $name"
	record "$name.pt" "$T/$name"
}

# count NAME LEAST: of the functions that NAME counted, at least LEAST are found to have as many calls.
count() {
	"$O/ptdecode" functions --json --rows=100000 -o "$T/json" "$T/$1.pt" || fail "$1: functions"
	python3 - "$T/json" "$T/$1.pt.out" "$2" "$1" <<'EOF' || fail "$1: other counts"
import json, re, sys
found = {}
for row in json.load(open(sys.argv[1]))["functions"]:
    name = row["function"].replace(" (inlined)", "")
    if re.search(r"operator\(\)\S*( const)?$|operator\(\)\([^()]*\)( const)?$", name):
        name = "lambda"
    elif "twice<" in name:
        name = "twice"
    name = re.sub(r"<.*?>", "", name).split("(")[0].split("::")[-1]
    found[name] = found.get(name, 0) + row["calls"]
wrong = []
lines = [line.split() for line in open(sys.argv[2])]
for name, n in lines:
    if found.get(name, 0) != int(n):
        wrong.append(f"{name}: {n}, not {found.get(name, 0)}")
print(f"{sys.argv[4]}: {len(lines) - len(wrong)} of {len(lines)} counts equal;", "; ".join(wrong))
sys.exit(len(lines) != 24 or len(lines) - len(wrong) < int(sys.argv[3]))
EOF
}

start_ptd
build gcc1 g++ -O1
build gcc2 g++ -O2
count gcc1 24
count gcc2 20
if command -v clang++ >/dev/null; then
	build clang2 clang++ -O2
	count clang2 20
else
	echo "no clang: left out"
fi

# Of what is inlined, each call says how it was entered, and all instructions are of someone.
for option in --inlines=no ""; do
	# shellcheck disable=SC2086 # an option or none
	"$O/ptdecode" calls $option --json -o "$T/calls$option" "$T/gcc2.pt" || fail "calls $option"
done
python3 - "$T/calls" "$T/calls--inlines=no" <<'EOF' || fail "calls do not add up"
import json, sys
some, called = ([c for c in json.load(open(path))["calls"] if "depth" in c] for path in sys.argv[1:])
inlined = [c for c in some if c["function"].endswith(" (inlined)")]
assert all(c["entered_by"] in ("inlining", "reentry") for c in inlined)
assert len(inlined) > 1000 and len(inlined) + len(called) == len(some)
assert all(0 <= c["instructions_self"] <= c["instructions"] for c in some)
a, b = (sum(c["instructions_self"] for c in calls) for calls in (some, called))
assert a == b, (a, b)
print(f"{len(inlined)} of {len(some)} calls were inlined; {a} instructions are all of someone")
EOF

# All that is said of threads and engines is the same.
for options in "--threads=1" "--threads=3" "-e insn"; do
	# shellcheck disable=SC2086 # words
	"$O/ptdecode" calls $options -o "$T/calls.other" --also "functions -o $T/functions.other" "$T/gcc2.pt" || fail "$options"
	[[ -e $T/calls.first ]] || { mv "$T/calls.other" "$T/calls.first"; mv "$T/functions.other" "$T/functions.first"; continue; }
	cmp "$T/calls.first" "$T/calls.other" && cmp "$T/functions.first" "$T/functions.other" || fail "$options: other calls"
done

# Without them: the functions that were called have the same calls, and none is inlined.
"$O/ptdecode" functions --inlines=no --json --rows=100000 -o "$T/without" "$T/gcc2.pt" || fail "--inlines=no"
"$O/ptdecode" functions --json --rows=100000 -o "$T/with" "$T/gcc2.pt" || fail "functions"
python3 - "$T/with" "$T/without" <<'EOF' || fail "called functions differ"
import json, sys
def called(path):
    rows = json.load(open(path))["functions"]
    total = sum(row["instructions"]["self"] for row in rows)
    return total, {(r["function"], r["address"], r["object"]): (r["calls"], r["instructions"]["total"]) for r in rows if not r["function"].endswith(" (inlined)")}
(total, some), (all_total, all) = called(sys.argv[1]), called(sys.argv[2])
assert some == all, set(some.items()) ^ set(all.items())
assert total == all_total, (total, all_total)
print(f"{len(all)} functions were called as often, and {total} instructions are all of someone")
EOF

# A name finds what was inlined, too.
"$O/ptdecode" latency --function=middle "$T/gcc1.pt" >"$T/latency" || fail "latency: exit status $?"
grep -qE "^Executions: 200\b" "$T/latency" || fail "latency: $(head -3 "$T/latency")"
"$O/ptdecode" latency --inlines=no --function=middle "$T/gcc1.pt" >"$T/latency"
[[ $? == 4 ]] || fail "latency --inlines=no: it is found"
