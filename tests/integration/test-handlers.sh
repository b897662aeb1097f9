#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# QEMU 7.2 enters signal handlers with a stack that is not aligned. Of a program that checks what 1000 handlers find
# and leave behind, none finds that when it is recorded, for x86-64 or i386; all are in the sideband; what is decoded
# equals the log.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/i386.sh
need qemu-x86_64

# check NAME PROGRAM: no handler finds or leaves anything wrong, and all are recorded.
check() {
	local engine n
	start_ptd
	record "$1" "$2"
	[[ $(<"$T/$1.out") == "1000 handlers, 0 misaligned, 0 wrong" ]] || fail "$1: $(<"$T/$1.out")"
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/$1" "$T/$1.log" >"$T/exact" || { cat "$T/exact"; fail "$1, $engine"; }
	done
	n=$("$O/ptdecode" sideband "$T/$1" | grep -c signal:signal_deliver)
	echo "$1: $n handlers recorded; $(tail -n 1 "$T/exact")"
	[[ $n -ge 1000 ]] || fail "$1: $n handlers recorded"
	drop "$1"
}

"$O/targets/handlers.c" || fail "without emulator"
check x86-64 "$O/targets/handlers.c"
# The kernel need not run it.
command -v qemu-i386 >/dev/null && "${CC:-cc}" "${m32[@]}" -msse2 -o "$T/handlers" tests/targets/handlers.c 2>"$T/err" ||
	{ echo "no i386: $(head -n 1 "$T/err")"; exit 0; }
check i386 "$T/handlers"
