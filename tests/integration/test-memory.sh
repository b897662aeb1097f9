#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Memory while decoding grows with what is mapped, not with the length of the trace: from a trace that is
# repeated 4 times to one that is repeated 20 times, PT and switches, the peak grows by 10 % and 6 MiB at the most; so it
# does for a bare stream. (Once, tables that are too long for memory take some more: they are mapped.) In long
# runs also from 64 MB of PT to 1 GB: 64 MiB more at the most, and 15 % of time for each MB, with one thread and with
# eight; by the functions and calls of a recording, too. ONLY is a pattern of the long runs (*).
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 "${CC:-cc}"
[[ -z ${PTD_ASAN:-} ]] || skip "the sanitizers' own memory grows"

# measure ARG...: run ptdecode with these arguments; sets peak, in KiB, and user, in ms of CPU.
measure() {
	local TIMEFORMAT=%U
	user=$( { time "$O/tools/peak" "$O/ptdecode" "$@" 2>"$T/peak" || echo failed >&2; } 2>&1)
	[[ $user != *failed* ]] || fail "$*: $(cat "$T/peak")"
	user=$((10#${user/./}))
	peak=$(cat "$T/peak")
}

# recording N, bare N: the trace or the bare stream N times, as $T/in; sets the arguments to decode it.
recording() {
	"$O/tools/reshape" "repeat=$1" "$T/it/data" "$T/in" || fail "reshape"
	args=(--buildid-dir "$T/it/objects" "$T/in")
}
bare() {
	for ((i = 0; i < $1; i++)); do cat "$T/pt"; done >"$T/in"
	args=(--raw-elf "$T/static" --raw-pt "$T/in")
}

# decode WHAT N: sets n, the instructions.
decode() {
	$1 "$2"
	measure export addresses -o "$T/addresses" "${args[@]}"
	n=$(($(stat -c %s "$T/addresses") / 8))
	echo "$1, $2 times: $(stat -c %s "$T/in") bytes, $n instructions, peak $peak KiB"
	rm "$T/in" "$T/addresses"
}

# long_run VERB THREADS WHAT BYTES MB: repeated, BYTES at a time, until it is MB megabytes.
long_run() {
	$3 $(($5 * 1000000 / $4))
	measure --threads "$2" $1 -o /dev/null "${args[@]}"
	per_mb=$((1000 * user / $5))
	echo "$1 of $3, $2 threads, $5 MB: peak $peak KiB, $user ms of user CPU: $per_mb us for each MB"
	rm "$T/in"
}

start_ptd
record it "$O/targets/signals.c"
"${CC:-cc}" -O1 -static -no-pie -o "$T/static" tests/targets/signals.c || fail "cannot compile"
record fixed "$T/static"
"$O/tools/auxbytes" "$T/fixed" 0 >"$T/pt" 2>/dev/null || fail "auxbytes"

for what in recording bare; do
	decode $what 1
	n1=$n peak1=$peak
	decode $what 4
	peak4=$peak
	decode $what 20
	[[ $n1 -gt 100000 && $n == $((20 * n1)) ]] || fail "$n instructions, not 20 times $n1"
	# Up to 1 MiB of PT is decoded ahead, which four times a bare stream does not have; and each thread keeps
	# for reuse what it once had to take.
	[[ $((10 * peak)) -le $((11 * peak4 + 61440)) ]] || fail "the peak grew from $peak4 KiB to $peak KiB"
	# In a short trace there is less to decode ahead.
	[[ $((peak - peak1)) -le 16384 ]] || fail "the peak grew from $peak1 KiB to $peak KiB"
done

[[ -n ${PTD_LONG:-} ]] || exit 0
recording="recording $(stat -c %s "$T/it/data")" bare="bare $(stat -c %s "$T/pt")"
for what in "summary 1 $recording" "summary 8 $recording" "summary 1 $bare" "summary 8 $bare" "functions 1 $recording" \
	"calls 1 $recording" "calls 8 $recording"; do
	# shellcheck disable=SC2053 # it is a pattern
	[[ $what == ${ONLY:-*} ]] || continue
	long_run $what 64
	peak1=$peak per_mb1=$per_mb
	long_run $what 1024
	[[ $((peak - peak1)) -le 65536 ]] || fail "the peak grew from $peak1 KiB to $peak KiB"
	[[ $per_mb -le $((2 * per_mb1)) ]] || fail "from $per_mb1 to $per_mb us for each MB"
done
