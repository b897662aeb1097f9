#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The jobs for which people come, each with the commands that ptdecode(1) has for it: two runs of which one took
# another way.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

# example TEXT: that the manual has this command.
example() {
	grep -qF -- "$1" decoder/ptdecode.1 || fail "ptdecode(1) does not have: $1"
}

# has FILE PATTERN...: lines that match the patterns stand in this order.
has() {
	local file=$1 line=0 next
	shift
	for pattern; do
		next=$(tail -n +$((line + 1)) "$file" | grep -nE -m1 -- "$pattern" | cut -d: -f1)
		[[ -n $next ]] || { cat "$file"; fail "no line, or none behind line $line: $pattern"; }
		line=$((line + next))
	done
}

records=$O/targets/records.c
printf 'v 1\nv 2\nv 3\nv 4\n' >"$T/good.txt"
printf 'v 1\nv 2\nx 3\nv 4\n' >"$T/other.txt"
start_ptd

echo "--- two runs that differ by a byte"
example "ptdecode -f diff good bad"
# Names of equal length: the environment lies on the stack, and code that compares texts looks at their alignment.
record good "$records" "$T/good.txt"
record twin "$records" "$T/good.txt"
cp "$T/other.txt" "$T/good.txt" # the same command
record evil "$records" "$T/good.txt"
"$O/ptdecode" -f diff "$T/good" "$T/twin" >"$T/same" || fail "-f diff: status $?"
has "$T/same" '^Threads that are the same: 1$' '^Threads that differ: 0$' '^Functions that differ: 0$'
"$O/ptdecode" -f diff "$T/good" "$T/evil" >"$T/text" || fail "-f diff: status $?"
has "$T/text" '^Threads that differ: 1$' '^    Then, behind .* check_record\+0x[0-9a-f]+ .*: jn?z' \
	'^    A at .* check_record\+' '^    B at .* check_record\+' '^Functions that differ: [1-9]'
grep 'Then, behind' "$T/text"
