#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Streams of ovni of recordings of many kinds, judged by ovni's own emulator besides the reader of test-ovni.sh: it takes
# them without a complaint, counts as many streams and events, and shows the functions that are innermost.
#
# PTD_OVNI is the folder of ovniemu of ovni 1.11 to 1.14, PTD_OVNI1 that of July 2022, which takes version 1 as its document
# has it; PTD_OVNI_CFG is the folder cfg of the former's sources.
. "$(dirname "$0")/common.sh"
. tests/integration/ovni.sh
need qemu-x86_64 python3
[[ -n ${PTD_OVNI:-} ]] || skip "PTD_OVNI does not say where ovniemu is"
[[ -x $PTD_OVNI/ovniemu ]] || skip "$PTD_OVNI has no ovniemu"

# counts VERSION: what the reader counted, as the emulator says it.
counts() {
	sed -n "s/^version $1: \([0-9]*\) streams, \([0-9]*\) events: .*/\1 streams, \2 events/p" "$T/read"
}

# emulate NAME
emulate() {
	local said
	OVNI_CONFIG_DIR=${PTD_OVNI_CFG:-} "$PTD_OVNI/ovniemu" -l "$T/$1.v3/ovni" >"$T/emu" 2>&1 ||
		{ tail -5 "$T/emu"; fail "$1: ovniemu"; }
	! grep -E 'WARN|ERROR' "$T/emu" || fail "$1: ovniemu complains"
	said="$(sed -n 's/.*loaded \([0-9]* streams\)$/\1/p' "$T/emu"), $(sed -n 's/.*processed \([0-9]*\) input events.*/\1 events/p' "$T/emu")"
	[[ $said == "$(counts 3)" ]] || fail "$1: ovniemu has $said, not $(counts 3)"
	tests/tools/ovni.py 3 "$T/$1.v3" "$T/$1.calls" "$T/$1.v3/ovni/thread.prv" >/dev/null || fail "$1: what ovniemu shows"
	echo "$1: ovniemu: $said, and the same functions"
	[[ -x ${PTD_OVNI1:-}/ovniemu ]] || return 0
	"$PTD_OVNI1/ovniemu" "$T/$1.v1/ovni" >"$T/emu" 2>&1 || { tail -5 "$T/emu"; fail "$1: ovniemu of version 1"; }
	! grep -iE 'error|warn|panic|abort' "$T/emu" || fail "$1: ovniemu of version 1 complains"
	grep -qx "loaded $(counts 1 | cut -d, -f1)" "$T/emu" || fail "$1: ovniemu of version 1 has other streams"
}

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
program fibers "$O/targets/calltruth.c" "$T/fibers.log"
program throw "$O/targets/calltruth-throw.cc" "$T/throw.log"
program gcc "${CC:-cc}" -O2 -c -o "$T/gcc.o" tests/targets/calls.c
