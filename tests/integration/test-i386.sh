#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# 32-bit programs: decoded = log, for all that user code can show; in trees where they and 64-bit ones
# execute each other and share the CPUs; and perf agrees.
#
# QEMU's i386 mode gives a thread that returns from a signal's handler the thread-local storage of the
# thread that was made last (one table of segments for all), recorded or not. So no program here has two
# threads of which the older one handles signals.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/tree.sh
. tests/integration/lib/i386.sh
. tests/integration/lib/jit.sh
. tests/integration/lib/libraries.sh
. tests/integration/lib/perf.sh
need qemu-x86_64 perf
[[ -z ${PTD_ASAN:-} ]] || skip "perf is not built with sanitizers"
need_m32
B=$T/bin
mkdir "$B"
for program in signals churn mortal execthreads relay jit; do
	build_m32 $program "$B/$program"
done
build_m32 relay "$B/static" -static
build_m32 i386/wrap "$B/wrap" -fno-pie -no-pie
R=$O/targets/relay.c r=$B/relay

# Signals have two kinds of frames. int3 and int $0x80, by which all system calls are made, are not reported:
# packets show them as interruptions before they ran.
for worker in nested interrupted timer faulting dividing trapping; do
	tree $worker 0 0 "$B/signals" $worker
	drop $worker
done

# From 64 to 32 bits and back, by execve and by a descriptor; children and threads of all.
tree relay 0 0 "$r" "$R" "$B/static" "$r" "$R" "$R" "$r"
threads 15
[[ $(grep -c "32 bits" "$T/relay.out") == 4 && $(grep -c "64 bits" "$T/relay.out") == 3 ]] || fail "relay: $(cat "$T/relay.out")"
judge relay "$T/relay"

# The format of memory traces is that of 64-bit programs: what of the tree is one is written.
"$O/ptdecode" export drmemtrace -o "$T/relay.mem" --also "summary -o $T/relay.sum" "$T/relay" 2>"$T/err" || { cat "$T/err"; fail "relay: ptdecode"; }
grep -qE "[0-9]+ instructions of 32-bit or 16-bit code are not in it" "$T/err" || fail "relay: nothing is said: $(cat "$T/err")"
"$O/tools/memtrace-check" --list "$T/relay.mem" >"$T/checked" || fail "relay: the drmemtrace is not valid"
left=$(sed -nE 's/.*: ([0-9]+) instructions of 32-bit.*/\1/p' "$T/err")
written=$(sed -nE 's/.* instructions ([0-9]+).*/\1/p' "$T/checked" | awk '{ n += $1 } END { printf "%.0f\n", n }')
all=$(awk '/^Instructions:/ { print $2 }' "$T/relay.sum")
echo "relay: $written of $all instructions in the drmemtrace, $left left out"
# Some branches, whose outcome is not known, are left out besides.
[[ $written -gt 0 && $((written + left)) -le $all && $((written + left + 100)) -ge $all ]] || fail "relay: that does not add up"
drop relay

# A 32-bit interpreter of a script; a shell's children.
printf '#! %s /bin/echo\n' "$r" >"$B/script"
chmod +x "$B/script"
tree shell 0 0 sh -c "'$B/script' && '$r' | '$r' | wc -l"
drop shell

make_libraries 0x2a000000 -m32
tree load 0 0 "$B/churn" load "${libraries[@]::2}"
grep -q ", 19 loads where the other was$" "$T/load.out" || fail "load: not at the same address: $(cat "$T/load.out")"
drop load
tree map 0 0 "$B/churn" map "${libraries[@]::3}"
drop map
tree wrap 0 0 "$B/wrap"
drop wrap

tree exec 6 0 "$B/mortal" exec 2
drop exec
tree execthreads 5 0 "$B/execthreads" other
drop execthreads
ulimit -c 0
tree signal15 143 0 sh -c "'$B/mortal' signal 15; exit \$?"
drop signal15
tree signal9 137 4 sh -c "'$B/mortal' signal 9; exit \$?"
drop signal9

# Time packets; returns that are all told; a JIT's code.
for pt in mtc=1,mtc_period=0,cyc=1 noretcomp=1; do
	start_ptd "PT=$pt"
	record pt "$r"
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/pt" "$T/pt.log" >"$T/exact" || { cat "$T/exact"; fail "$pt, $engine"; }
	done
	echo "$pt: $(tail -1 "$T/exact")"
	drop pt
done
record_jit jit "$B/jit" "$T/dumps" noted
check_jit jit
drop jit
# Its address 0 is where the machine lets it be (vm.mmap_min_addr), and seldom that of the process.
QEMU_GUEST_BASE=0x10000 record_jit jit "$B/jit" "$T/dumps" noted
check_jit jit
drop jit

# Without the other emulator; ptctl's own is looked for first.
[[ ! -e $O/qemu/qemu-i386 ]] || exit 0
ln -s "$(command -v qemu-x86_64)" "$B/qemu-x86_64"
start_ptd
PATH=$B "$O/ptctl" record -- "$r" 2>"$T/err" && fail "recorded without qemu-i386"
grep -q "qemu-i386 cannot record programs: No such file" "$T/err" || fail "no qemu-i386: $(cat "$T/err")"
