#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Calls and returns that do not fit each other: retpolines, recursions deeper than a CPU's stack of return
# addresses, longjmp(), stacks that are switched, returns that jump. Each near return takes an address from the
# stack, also one that a TIP follows; libipt's stack is another one. Decoded = log by both engines, which agree in
# all, and perf lists the same. So it is in 32-bit code, and where PSBs come often.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/i386.sh
. tests/integration/lib/perf.sh
need qemu-x86_64 "${CC:-cc}"

thunks=(-O2 -fcf-protection=none -mindirect-branch=thunk -mfunction-return=thunk)
programs=("$O/targets/returns.c")
build() { # NAME FLAG...
	"${CC:-cc}" "${@:2}" -o "$T/$1" tests/targets/returns.c 2>"$T/cc.err" && programs+=("$T/$1")
}
build thunks "${thunks[@]}" -fno-pie -no-pie || echo "the compiler has no retpolines: left out"
build pie "${thunks[@]}" -fpie -pie || true
build plain -O1 -fcf-protection=full || fail "cc: $(cat "$T/cc.err")"
if command -v qemu-i386 >/dev/null; then
	build m32 "${m32[@]}" || echo "32-bit programs cannot be built: left out"
	build m32-thunks "${m32[@]}" "${thunks[@]}" || true
fi

# check ENGINE: what ran, all of it.
check() {
	"$O/tools/exact" -e "$1" "$T/$name" "$T/$name.log" >"$T/exact.$1" || { cat "$T/exact.$1"; fail "$name, $1"; }
	echo "$name $1: $(tail -1 "$T/exact.$1")"
	"$O/ptdecode" -e "$1" summary "$T/$name" >"$T/summary.$1" || fail "$name, $1: $(grep -A9 ^Gaps "$T/summary.$1")"
}

n=0
for program in "${programs[@]}"; do
	for pt in psb_period=0 mtc=1,mtc_period=3; do
		name=returns$((n++))
		start_ptd "PT=$pt"
		record $name "$program"
		each_engine check
		# libipt takes the time of an MTC for that of another branch.
		[[ $pt == mtc* ]] || "$O/ptdecode" verify "$T/$name" || fail "$name: the engines differ"
		[[ ! -x $(command -v perf) ]] || judge $name "$T/$name"
		drop $name
	done
done
