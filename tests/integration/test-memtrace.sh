#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The files of a drmemtrace directory: their bytes do not depend on the number of threads; unzip and gzip accept
# them; plain ones have the same records, but for those where a chunk ends and the next begins; the schedules are those
# of the traces; and what a full disk left unfinished has no name that ends like a trace's.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 unzip gzip python3

# check NAME THREADS...: the recording's traces, by so many threads.
check() {
	local name=$1 n file
	shift
	for n in 1 "$@"; do
		"$O/ptdecode" --threads $n export drmemtrace -o "$T/$name.mem.$n" "$T/$name" ||
			fail "$name: $n threads: exit status $?"
		diff -r "$T/$name.mem.1" "$T/$name.mem.$n" || fail "$name: $n threads write other files"
		"$O/ptdecode" --threads $n export drmemtrace --compress=none -o "$T/$name.plain.$n" "$T/$name" ||
			fail "$name: plain, $n threads: exit status $?"
		diff -r "$T/$name.plain.1" "$T/$name.plain.$n" || fail "$name: plain: $n threads write other files"
	done
	for file in "$T/$name.mem.1"/trace/*.zip; do
		unzip -tq "$file" >"$T/out" || { cat "$T/out"; fail "$file"; }
	done
	for file in "$T/$name.mem.1"/trace/drmemtrace.*; do
		tests/tools/drmemtrace.py records "$file" | cmp - "$T/$name.plain.1/trace/$(basename "$file" .zip)" ||
			fail "$file: the plain file has other records"
	done
	for file in serial_schedule.bin.gz cpu_schedule.bin.zip; do
		cmp "$T/$name".{plain,mem}.1/trace/$file || fail "$name: $file depends on the compression"
	done
	gzip -t "$T/$name.mem.1/trace/serial_schedule.bin.gz" || fail "serial_schedule.bin.gz"
	tests/tools/drmemtrace.py schedule "$T/$name.mem.1" || fail "$name: the schedule"
}

start_ptd
record signals "$O/targets/signals.c"
check signals 3
drop signals
# More instructions than a chunk has, as a thread of signals has, too, if it waits for long enough.
seq 24000 >"$T/numbers"
record gzip gzip -1 "$T/numbers"
check gzip 3
[[ $(unzip -Z1 "$T"/gzip.mem.1/trace/drmemtrace.* | wc -l) -gt 1 ]] || fail "gzip: one chunk"
drop gzip
record tree sh -c 'ls /usr | sort | tail -1; exec true'
check tree 2 3 8
stop_ptd

# A disk that is full. A file system of a few pages can be had by root.
if unshare -m true 2>/dev/null && mkdir "$T/small"; then
	for how in zip none; do
		T=$T unshare -m bash -c 'mount -t tmpfs -o size=64k none "$1" && shift && "$@" 2>"$T/stderr"; status=$?
			find "$T/small/out/trace" -type f -printf "%f\n" >"$T/left"; exit $status' - \
			"$T/small" "$O/ptdecode" export drmemtrace --compress=$how -o "$T/small/out" "$T/tree"
		[[ $? == 1 ]] && grep -qx "ptdecode: $T/small/out: cannot write: No space left on device" "$T/stderr" ||
			fail "a full disk, $how: $(cat "$T/stderr")"
		[[ -s $T/left ]] && ! grep -v '\.part$' "$T/left" || fail "a full disk, $how: $(cat "$T/left")"
	done
fi
