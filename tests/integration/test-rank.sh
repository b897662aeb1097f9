#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Rank finds planted faults: of programs that go wrong for some inputs, six good and six bad runs are recorded, and
# the line of the fault, or of a branch next to it, is to be among the first three. FAULTS says which of them;
# long-rank.sh takes all ten, of which eight are to be found.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

start_ptd
: "${FAULTS:=bounds head digit}" "${LEAST:=3}"
N=6
n_found=0
for name in $FAULTS; do
	good=() bad=()
	for ((seed = 100; ${#good[@]} < N || ${#bad[@]} < N; seed++)); do
		[[ $seed -lt 500 ]] || fail "$name: ${#good[@]} good and ${#bad[@]} bad runs"
		# Most runs of the one with threads are good; of the others it is known which ones are.
		if [[ $name != lock ]]; then
			("$O/targets/faults.c" $name $seed) >/dev/null 2>&1 && kind=good || kind=bad
			declare -n runs=$kind
			[[ ${#runs[@]} -lt $N ]] || continue
		fi
		"$O/ptctl" record -o "$T/recorded" -- "$O/targets/faults.c" $name $seed >/dev/null 2>"$T/err" && kind=good || kind=bad
		[[ -e $T/recorded/data ]] || fail "$name $seed: no recording: $(cat "$T/err")"
		declare -n runs=$kind
		[[ ${#runs[@]} -lt $N ]] || { rm -rf "$T/recorded"; continue; }
		runs+=("$T/$name.$kind.${#runs[@]}")
		mv "$T/recorded" "${runs[-1]}"
	done
	"$O/ptdecode" rank --json -o "$T/json" "${good[@]}" -- "${bad[@]}" 2>"$T/err" || [[ $? == 3 ]] || fail "$name: $(cat "$T/err")"
	"$O/ptdecode" rank --rows=3 -o "$T/text" "${good[@]}" -- "${bad[@]}" 2>/dev/null
	# The recordings know which of them crashed.
	if [[ $name == head ]]; then
		"$O/ptdecode" rank --bad=crash --json -o "$T/crash" "${bad[@]:0:3}" "${good[@]}" "${bad[@]:3}" 2>"$T/err" ||
			[[ $? == 3 ]] || fail "--bad=crash: $(cat "$T/err")"
		python3 -c 'import json, sys
one, other = (json.load(open(name)) for name in sys.argv[1:])
keys = "good", "bad"
assert [one[k] for k in keys] == [other[k] for k in keys]
seen = lambda d: {(r["in_bad"], r["in_good"], s["address"], s["what"]) for r in d["rank"] for s in r["seen"]}
assert seen(one) == seen(other)' "$T/json" "$T/crash" || fail "--bad=crash ranks otherwise"
		"$O/ptdecode" rank --bad=enter:main "${good[@]}" >/dev/null 2>&1
		[[ $? == 4 ]] || fail "runs of one kind"
	fi
	place=$(python3 - "$T/json" "$name" tests/targets/faults.c <<'EOF'
import json, sys
document = json.load(open(sys.argv[1]))
assert document["format"] == "rank" and document["good"] == document["bad"] == 6, document
lines = open(sys.argv[3]).read().split("\n")
fault = next(i for i, line in enumerate(lines, 1) if f"FAULT: {sys.argv[2]};" in line)
scores = [row["score_millionths"] for row in document["rank"]]
assert all(0 < score <= 1000000 for score in scores)
for row in document["rank"]:
    assert row["score_millionths"] == round(1e6 * row["in_bad"] / (6 + row["in_good"])), row
# Its line, one of four beside it, or that of the nearest branch. Of a group, what the text shows.
branches = {seen["line"] for row in document["rank"] for seen in row["seen"]
            if seen["file"] == "faults.c" and seen["what"] != "entered"}
nearest = min(abs(line - fault) for line in branches)
near = [i for i, row in enumerate(document["rank"], 1) for seen in row["seen"][:8]
        if seen["file"] == "faults.c" and abs(seen["line"] - fault) <= max(4, nearest)]
print(near[0] if near else 0)
EOF
	) || fail "$name: the JSON"
	echo "$name: the fault's line is number $place of what is ranked"
	cat "$T/text"
	[[ $place -eq 0 || $place -gt 3 ]] || n_found=$((n_found + 1))
	rm -rf "$T/$name".*
done

# Of one recording: request 731 is slow, since it makes the table anew.
"$O/ptctl" record -o "$T/requests" -- "$O/targets/requests.c" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
line=$(grep -n 'if (number == SPIKE_AT)' tests/targets/requests.c | cut -d : -f 1)
for options in "-e flow --threads 1" "-e flow --threads 3" "-e insn"; do
	# shellcheck disable=SC2086
	"$O/ptdecode" rank --function=handle_request $options -o "$T/slow" "$T/requests" || fail "rank --function: status $?"
	grep -qx "Runs: 1999 good, 1 bad" "$T/slow" && sed -n '4,5p' "$T/slow" | grep -q "^1.000 .* at requests.c:$line (" &&
		grep -q "entered *grow_table" "$T/slow" || { cat "$T/slow"; fail "rank --function, $options"; }
done
"$O/ptdecode" rank --function=nosuch "$T/requests" >/dev/null 2>&1
[[ $? == 4 ]] || fail "rank of a function that was not called"
"$O/ptdecode" rank --function=main -- "$T/requests" >/dev/null 2>&1
[[ $? == 2 ]] || fail "rank --function with bad runs"
echo "$n_found found"
[[ $n_found -ge $LEAST ]] || fail "$n_found found, of at least $LEAST"
