#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Real traces of other projects, as bare PT streams: the executed addresses by both engines have the
# count and the SHA-256 that the traces' description lists. libipt's instruction decoder stops
# early on one of them, so there it is not asked.
. "$(dirname "$0")/lib/common.sh"
[[ -d $DATA ]] || skip "no ../shared/data: the real traces are not part of the project"

# expect NAME COUNT SHA256 ENGINE ARGS...
expect() {
	local name=$1 count=$2 sum=$3 engine=$4 status got_count got_sum
	shift 4
	(cd "$DATA/$name" && "$O/ptdecode" -e "$engine" export addresses -o "$T/out" "$@" --also "summary -o $T/sum")
	status=$?
	got_count=$(($(stat -c %s "$T/out") / 8))
	got_sum=$(sha256sum <"$T/out" | cut -d' ' -f1)
	echo "$name $engine: $got_count instructions, $got_sum, exit status $status"
	[[ $status == 0 && $got_count == "$count" && $got_sum == "$sum" ]] ||
		fail "$name $engine: expected $count instructions, $sum"
}

pages=(--raw-pt pt.bin --raw-pages code.addr,code.bin --cpu-model 6/94/3)
row() {
	sed -n "s/^| $1 |.*| \([0-9,]*\) | \([0-9a-f]\{64\}\) |.*/\1 \2/p" "$DATA/README.md" | tr -d ,
}

for name in mruby foo hello ovf01; do
	read -r count sum < <(row $name)
	for engine in flow insn; do
		[[ $name.$engine == ovf01.insn ]] ||
			expect $name "$count" "$sum" $engine "${pages[@]}"
	done
done
read -r count sum < <(row drpt2trace)
for engine in flow insn; do
	expect drpt2trace "$count" "$sum" $engine --raw-pt pt.bin --raw-elf hello --cpu-model 6/85/4 \
		--mtc-freq 3 --nom-freq 37 --cpuid-15 2/308
done
