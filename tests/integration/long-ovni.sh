#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Streams of ovni of recordings of many kinds, judged by ovni's own emulator besides the reader of test-ovni.sh: it takes
# them without a complaint, counts as many streams and events, and shows the functions that are innermost.
#
# PTD_OVNI, PTD_OVNI_CFG and PTD_OVNI1 say where the emulator is: see ovni.sh.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/ovni.sh
need qemu-x86_64 python3
[[ -n ${PTD_OVNI:-} ]] || skip "PTD_OVNI does not say where ovniemu is"
[[ -x $PTD_OVNI/ovniemu ]] || skip "$PTD_OVNI has no ovniemu"

# try NAME [OPTION]...
try() {
	write_ovni "$@" >"$T/read" || { cat "$T/read"; exit 1; }
	sed "s/^/$1: /" "$T/read"
	emulate "$1"
}

start_ptd
record --timing ls ls -l /usr
try ls
# program NAME ARGUMENT...
program() {
	local name=$1
	shift
	record --timing "$name" "$@"
	try "$name"
	drop "$name"
}

program relay "$O/targets/relay.c" /bin/true
program signals "$O/targets/signals.c"
program fibers "$O/targets/calltruth.c" "$T/said.calls"
program throw "$O/targets/calltruth-throw.cc" "$T/said.calls"
program gcc "${CC:-cc}" -O2 -c -o "$T/gcc.o" tests/targets/calls.c
