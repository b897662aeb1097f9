#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The system calls and signals of a program that the software source recorded: ptdecode and perf find in the
# snapshot those that the program says it made and took, in the order of each thread, and the drmemtrace files
# have them behind the instructions that they belong to.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

# Of the calls, only those of the program itself.
calls='^(102|104|107|108|110|111)$'

# sorted: lines "TID what number" by thread.
sorted() {
	awk -v calls="$calls" '$2 == "signal" || $3 ~ calls' | sort -s -n -k1,1
}

# same WHO: what came on standard input is what the program printed.
same() {
	sorted >"$T/found"
	cmp "$T/expected" "$T/found" || { diff "$T/expected" "$T/found" | head -5; fail "$1: not those of the program"; }
}

start_ptd
record kernel "$O/targets/kernel.c"
sorted <"$T/kernel.out" >"$T/expected"
[[ $(wc -l <"$T/expected") -gt 6200 ]] || fail "the program printed too little"

"$O/ptdecode" sideband "$T/kernel" | sed -nE \
	's/^ *[0-9]+\/([0-9]+) .* raw_syscalls:sys_enter: NR ([0-9]+)$/\1 call \2/p
	s/^ *[0-9]+\/([0-9]+) .* signal:signal_deliver: sig=([0-9]+) sa_handler=.*/\1 signal \2/p' | same ptdecode
if command -v perf >/dev/null && [[ -z ${PTD_ASAN:-} ]]; then
	perf script -i "$T/kernel/data" --no-itrace -F tid,event,trace 2>"$T/perf.err" | sed -nE \
		's/^ *([0-9]+) +raw_syscalls:sys_enter: NR ([0-9]+)$/\1 call \2/p
		s/^ *([0-9]+) +signal:signal_deliver: sig=([0-9]+) sa_handler=.*/\1 signal \2/p' | same perf
fi

for threads in 1 3; do
	"$O/ptdecode" --threads $threads export drmemtrace -o "$T/mem.$threads" "$T/kernel" || fail "drmemtrace"
	"$O/tools/memtrace-check" "$T/mem.$threads" || fail "memtrace-check"
	tests/tools/drmemtrace.py kernel "$T/mem.$threads" >"$T/kernel.markers" || fail "the files"
	same "drmemtrace, $threads threads" <"$T/kernel.markers"
done
if awk '$2 == "call" && $3 == 18446744073709551615' "$T/kernel.markers" | grep -m1 .; then
	fail "a system call has no number"
fi

# The rings of a long recording hold the latest only: what is no more there is not known, and nothing else is said.
start_ptd AuxSize=64K
record some "$O/targets/kernel.c"
"$O/ptdecode" export drmemtrace -o "$T/some.mem" "$T/some"
"$O/tools/memtrace-check" "$T/some.mem" || fail "memtrace-check of the latest"
tests/tools/drmemtrace.py kernel "$T/some.mem" | awk '$3 != 18446744073709551615' | sorted >"$T/found"
sorted <"$T/some.out" >"$T/expected"
[[ -s $T/found ]] || fail "nothing of the latest"
for tid in $(cut -d' ' -f1 "$T/found" | sort -u); do
	grep "^$tid " "$T/found" >"$T/found.1"
	grep "^$tid " "$T/expected" | tail -n "$(wc -l <"$T/found.1")" | cmp - "$T/found.1" || fail "thread $tid: not its latest"
done
echo "$(wc -l <"$T/found") of $(wc -l <"$T/expected") in small rings"

# A file for each core: what is read back is what the threads did, though they share the cores and go from one to
# another.
start_ptd Cpus=1
record shared sh -c '"$1" >/dev/null & "$1" >/dev/null; wait' - "$O/targets/kernel.c"
"$O/ptdecode" export drmemtrace --core-sharded -o "$T/cores" "$T/shared" || fail "core-sharded"
"$O/tools/memtrace-check" "$T/cores" || fail "core-sharded: memtrace-check"
"$O/tools/exact" -b "$T/cores" "$T/shared.log" >"$T/exact" || { tail -5 "$T/exact"; fail "core-sharded: read back"; }
tail -1 "$T/exact"
n_threads=$(tail -1 "$T/exact" | cut -d' ' -f1) n_files=$(ls "$T/cores/trace" | wc -l)
((n_threads >= 5 && n_files <= 2)) || fail "core-sharded: $n_threads threads in $n_files files"
