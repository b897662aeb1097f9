#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Fuzzing of what processes with different rights read of each other: what clients send to ptd's control socket, what
# programs write to a pool of the software source, and what ptd and its collector send to each other. Each is fuzzed for
# FUZZ_SECONDS (1200), two at a time, and must run FUZZ_RUNS (10^6) inputs.
. "$(dirname "$0")/lib/common.sh"
need clang make
[[ -z ${PTD_ASAN:-} ]] || skip "fuzzers are sanitized anyway"
seconds=${FUZZ_SECONDS:-1200} runs=${FUZZ_RUNS:-1000000}
pids=()

# fuzz NAME: its output is in $T/NAME.
fuzz() {
	make -s O="$T/build" "fuzz-$1" T="$seconds" >"$T/$1" 2>&1
}

# judge NAME STATUS
judge() {
	local n
	n=$(sed -nE 's/^Done ([0-9]+) runs in .*/\1/p' "$T/$1")
	[[ $2 -eq 0 && -n $n ]] || fail "$1: exit status $2: $(tail -40 "$T/$1")"
	[[ $n -ge $runs ]] || fail "$1: $n runs in $seconds s; at least $runs are asked for"
	echo "$1: $n runs in $seconds s, nothing found"
}

names=(control poolrecords collector)
for name in "${names[@]}"; do
	while [[ $(jobs -r | wc -l) -ge 2 ]]; do wait -n; done
	fuzz "$name" &
	pids+=($!)
done
for i in "${!names[@]}"; do
	wait "${pids[i]}"
	judge "${names[i]}" $?
done
