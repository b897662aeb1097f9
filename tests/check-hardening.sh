#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Print what the programs and plugins $2 and so on, built in $1, lack of their hardening; fail if there is anything. All is
# read off the built files, and in code only off functions of our own: the static libraries that are linked
# in bring checks of Debian's. (There is no note of IBT: Debian 12's crt files lack it, so the linker cannot
# write it, and is not forced to.)
set -u
O=$1
faults=$(mktemp)
trap 'rm -f "$faults"' EXIT

# objects: our own, not those that an earlier build left of sources that are gone.
objects() {
	(cd "$O" && find daemon decoder ctl -name '*.o') | while read -r object; do
		[[ ! -e $(dirname "$0")/../${object%.o}.c ]] || printf '%s\0' "$O/$object"
	done
}

# names TYPES: the functions of our own objects whose type is among these, as nm has it.
names() {
	objects | xargs -0 nm --defined-only | awk -v types="$1" 'length($2) == 1 && index(types, $2) { print $3 }' | sort -u
}

# The compiler knows all calls of a static function, which then needs no endbr64.
ours=$(names T)
static=$(names t)
[[ -n $ours ]] || { echo "$O: no objects to learn the names of our functions from"; exit 1; }

for file in "${@:2}"; do
	headers=$(readelf --wide --file-header --program-headers --dynamic "$O/$file") || exit 1
	has() { grep -qE "$1" <<<"$headers" || echo "$O/$file: $2"; }
	has '^ *GNU_RELRO' "no RELRO"
	has '\(FLAGS\).*BIND_NOW' "no BIND_NOW, so RELRO is not full"
	has '^ *Type: *DYN' "not position-independent"
	[[ $file == *.so* ]] || has '\(FLAGS_1\).* PIE' "not linked as PIE"
	grep -qE '\(TEXTREL\)' <<<"$headers" && echo "$O/$file: text relocations"
	grep -qE '^ *GNU_STACK .* RW ' <<<"$headers" || echo "$O/$file: an executable stack"

	objdump --disassemble --no-show-raw-insn "$O/$file" | awk -v file="$O/$file" -v ours="$ours" -v static="$static" '
	BEGIN {
		n = split(ours, names, "\n")
		for (i = 1; i <= n; i++)
			is_ours[names[i]] = is_extern[names[i]] = 1
		n = split(static, names, "\n")
		for (i = 1; i <= n; i++)
			is_ours[names[i]] = 1
	}
	/^[0-9a-f]+ <.*>:$/ {
		name = substr($2, 2, length($2) - 3)
		first = 1
		next
	}
	!(name in is_ours) { next }
	first {
		n_functions++
		first = 0
		if (name in is_extern && !/endbr64/)
			print file ": " name " does not begin with endbr64"
	}
	/call.*<__stack_chk_fail@/ { n_protected++ }
	/(call|jmp).*<__[a-z]*_chk@/ { n_fortified++ }
	END {
		if (!n_functions)
			print file ": no function of ours"
		if (!n_protected)
			print file ": no function of ours has a stack protector"
		if (!n_fortified)
			print file ": no function of ours calls what _FORTIFY_SOURCE checks"
	}'
done >"$faults"
cat "$faults"
[[ ! -s $faults ]]
