#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Code in memory that no system call made executable: here a stack that is so from the start. A
# snapshot while the program lives has its bytes.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/i386.sh
need qemu-x86_64 "${CC:-cc}"

# of BITS: record $T/stackcode, decode.
of() {
	start_ptd
	rm -f "$T/tell"
	mkfifo "$T/tell"
	record live "$T/stackcode" <"$T/tell" &
	recording=$!
	exec 7>"$T/tell"
	await test -s "$T/live.out"
	"$O/ptctl" snapshot -o "$T/snapshot" >/dev/null 2>&1 || fail "snapshot"
	exec 7>&-
	wait "$recording" || fail "the program: exit status $?"
	[[ $(cat "$T/live.out") == 502500 ]] || fail "its output is another: $(cat "$T/live.out")"
	grep -q "1 times code ran that no system call had made executable" "$T/live.err" ||
		fail "it was no surprise, nothing was tested: $(cat "$T/live.err")"
	for engine in flow insn; do
		"$O/tools/pieces" -e $engine "$T/snapshot" "$T/live.log" >"$T/pieces" || { cat "$T/pieces"; fail "$engine"; }
		echo "$1 bits, $engine: $(tail -1 "$T/pieces")"
	done
	"$O/ptdecode" text "$T/snapshot" >"$T/text" 2>/dev/null || fail "ptdecode"
	n=$(grep -c '\[anon\]' "$T/text")
	[[ $n == 3000 ]] || fail "$n instructions of the stack instead of 3000"
	echo "$n instructions of the stack"
	drop live
	rm -r "$T/snapshot"
}

"${CC:-cc}" -O1 -z execstack -o "$T/stackcode" tests/targets/stackcode.c || fail "cc -z execstack"
of 64

# The memory of 32-bit programs is elsewhere in QEMU's.
need_m32
build_m32 stackcode "$T/stackcode" -O1 -z execstack
of 32
