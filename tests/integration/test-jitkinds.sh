#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What JIT compilers do that one would not expect (tests/targets/jitkinds.c): each function has its
# name, nothing is listed that did not run, and nothing is missing. The programs live for some
# milliseconds.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

# check KIND [MESSAGE]: what ran has the names that the program says; ptdecode says MESSAGE.
check() {
	local message=${2:-}
	start_ptd
	rm -rf "$T/dumps" "$T/snap"
	mkdir "$T/dumps"
	"$O/ptctl" record -o "$T/snap" -- "$T/jitkinds" "$1" "$T/dumps" >"$T/ran" 2>"$T/said" ||
		{ cat "$T/said"; fail "$1: record"; }
	stop_ptd
	"$O/ptdecode" summary --json "$T/snap" >"$T/summary" 2>"$T/said" || fail "$1: exit status $?: $(cat "$T/said")"
	[[ -z $message ]] || grep -q "$message" "$T/said" || { cat "$T/said"; fail "$1: ptdecode does not say: $message"; }
	python3 - "$T/ran" "$T/summary" "$T/dumps" <<-'EOT' || { cat "$T/snap/manifest"; fail "$1: names"; }
		import collections, json, sys
		ran, listed = collections.Counter(), collections.Counter()
		for line in open(sys.argv[1]):
		    n, name = line.split()
		    ran[name] += int(n)
		summary = json.load(open(sys.argv[2]))
		for row in summary["symbols"]:
		    if row["object"] in ("[jit]", "[anon]") or row["object"].startswith(sys.argv[3]) or row["symbol"] == "moved":
		        name = (row["symbol"] or "-").split("+")[0]
		        listed["-" if name == "image" else name] += row["instructions"]
		print(dict(listed))
		if ran != listed:
		    print("ran:", dict(ran))
		sys.exit(ran != listed)
	EOT
}

# check_claims: of the file data alone, as perf record leaves it, the jitdumps say what ran, by whatever name.
check_claims() {
	"$O/ptdecode" --force --buildid-dir "$T/snap/objects" summary --json -o "$T/summary" "$T/snap/data" 2>"$T/said"
	grep -q '"instructions_claimed": 64,' "$T/summary" && grep -q '"of_first"' "$T/summary" &&
		grep -q '"of_second"' "$T/summary" || { cat "$T/summary" "$T/said"; fail "claims"; }
}

cc -O1 -o "$T/jitkinds" tests/targets/jitkinds.c || fail "cc"
for kind in shared private salted close two image large memfd unlinked; do
	echo "$kind:"
	check "$kind"
	[[ $kind != two ]] || check_claims
done
echo "exec:"
check exec1 'began this jitdump anew'
