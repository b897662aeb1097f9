#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Memory while decoding grows with what is mapped, not with the length of the trace: of a trace that is
# repeated 20 times, PT and switches, the peak is within 10 % of that of the trace alone.
. "$(dirname "$0")/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "the sanitizers' own memory grows"

# decode N: sets n, the instructions, and peak, in KiB.
decode() {
	"$O/tools/reshape" "repeat=$1" "$T/it/data" "$T/$1" || fail "reshape"
	"$O/tools/peak" "$O/ptdecode" -f addresses -o "$T/addresses" "$T/$1" 2>"$T/peak" ||
		fail "$1 times: $(cat "$T/peak")"
	n=$(($(stat -c %s "$T/addresses") / 8))
	peak=$(cat "$T/peak")
	echo "$1 times: $(stat -c %s "$T/$1") bytes, $n instructions, peak $peak KiB"
	rm "$T/$1" "$T/addresses"
}

start_ptd
record it "$O/targets/signals.c"
decode 1
n1=$n peak1=$peak
decode 20
[[ $n1 -gt 100000 && $n == $((20 * n1)) ]] || fail "$n instructions, not 20 times $n1"
[[ $((10 * peak)) -le $((11 * peak1)) ]] || fail "the peak grew from $peak1 KiB to $peak KiB"
