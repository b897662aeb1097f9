#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# drmemtrace directories as an input: what was written passes memtrace-check, and, read back, has the instructions
# of the plugin's log, with the symbols that the recording has. The C program of ptd-drmemtrace(5) sees them, too.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 cc

# The C program in the page, which begins with its first #include.
sed -n '/^#include <inttypes.h>/,/^\.Ed/p' decoder/ptd-drmemtrace.5 | sed '$d; s/\\e/\\/g' >"$T/symbols.c"
cc -D_GNU_SOURCE -Wall -Wno-unused-result -o "$T/symbols" "$T/symbols.c" || fail "the program in ptd-drmemtrace(5)"

# columns INPUT: tid, address and symbol of each instruction, in the order of each thread.
columns() {
	"$O/ptdecode" text --no-bytes "$1" | awk '!/^#/ {
		split($2, id, "/"); address = $5; sub(/^.*  /, ""); sub(/ \([^()]*\)$/, "")
		print id[2], address, $0 }' | sort -s -n -k1,1
}

for name in true signals; do
	command=/bin/true
	[[ $name == true ]] || command=$O/targets/signals.c
	start_ptd
	record $name "$command"
	"$O/ptdecode" export drmemtrace -o "$T/$name.mem" "$T/$name" || fail "$name: drmemtrace"
	"$O/tools/memtrace-check" "$T/$name.mem" || fail "$name: the drmemtrace is not valid"
	"$O/tools/exact" -b "$T/$name.mem" "$T/$name.log" >"$T/exact" || { tail -5 "$T/exact"; fail "$name: read back"; }
	tail -1 "$T/exact"
done

columns "$T/true" >"$T/recorded"
columns "$T/true.mem" >"$T/back"
[[ -s $T/back ]] || fail "nothing was read back"
grep -v '\[unknown\]$' "$T/back" >"$T/named"
n=$(wc -l <"$T/named")
((n * 10 > $(wc -l <"$T/recorded") * 9)) || fail "only $n instructions have a symbol"
join -v 2 <(sort -u "$T/recorded" | sed 's/ /~/g' | sort) <(sort -u "$T/named" | sed 's/ /~/g' | sort) >"$T/other"
[[ ! -s $T/other ]] || { head -5 "$T/other"; fail "symbols differ"; }
echo "$n instructions with the symbols of the recording"

for file in "$T"/true.mem/trace/drmemtrace.*; do
	unzip -p "$file" | "$T/symbols" "$T/true.mem/aux/symbols.tsv"
done | sed 's/^/x /; s/ -$/ [unknown]/' | cut -d' ' -f2- >"$T/listed"
cut -d' ' -f2- "$T/back" | sed 's/+0x[0-9a-f]*$//' >"$T/expected"
cmp "$T/listed" "$T/expected" || { diff "$T/listed" "$T/expected" | head -5; fail "the program of the page lists others"; }

# A damaged directory: the file, the record and the rule are named.
file=$(echo "$T"/true.mem/trace/drmemtrace.*)
unzip -p "$file" >"${file%.zip}" && rm "$file" && file=${file%.zip}
dd if=/dev/zero of="$file" bs=12 seek=1000 count=1 conv=notrunc status=none
"$O/tools/memtrace-check" "$T/true.mem" >"$T/said" && fail "a damaged trace passes"
grep -q "^$file: record 1000 (byte 12000): " "$T/said" || { cat "$T/said"; fail "the fault is not named"; }
