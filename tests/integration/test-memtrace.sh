#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The files of a drmemtrace directory: whatever compresses them, they hold the same records; their bytes do not
# depend on the number of threads; unzip, lz4 and gzip accept them; and what a full disk left unfinished has
# no name that ends like a trace's. A zip file has records more, where a chunk ends and the next begins.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 unzip lz4 gzip python3

suffix() {
	[[ $1 == none ]] || echo ".$1"
}

# The records of a file.
records() {
	case $1 in
	*.zip) tests/tools/drmemtrace.py records "$1" ;;
	*.lz4) lz4 -dc "$1" ;;
	*) cat "$1" ;;
	esac
}

# check NAME THREADS...: the recording's traces in each container, by so many threads.
check() {
	local name=$1 how n file
	shift
	for how in none zip lz4; do
		for n in 1 "$@"; do
			"$O/ptdecode" --threads $n export drmemtrace "--compress=$how" -o "$T/$name.$how.$n" "$T/$name" ||
				fail "$name: $how, $n threads: exit status $?"
			diff -r "$T/$name.$how.1" "$T/$name.$how.$n" || fail "$name: $how: $n threads write other files"
		done
		for file in "$T/$name.none.1"/trace/drmemtrace.*; do
			file=$(basename "$file")
			cmp <(records "$T/$name.$how.1/trace/$file$(suffix $how)") "$T/$name.none.1/trace/$file" ||
				fail "$name: $how: $file has other records"
		done
	done
	for file in "$T/$name.zip.1"/trace/*.zip; do
		unzip -tq "$file" >"$T/out" || { cat "$T/out"; fail "$file"; }
	done
	for file in "$T/$name.lz4.1"/trace/*.lz4; do
		lz4 -tq "$file" || fail "$file"
	done
	gzip -t "$T/$name.zip.1/trace/serial_schedule.bin.gz" || fail "serial_schedule.bin.gz"
	tests/tools/schedule.py "$T/$name.none.1" || fail "$name: the schedule"
	for file in serial_schedule.bin.gz cpu_schedule.bin.zip; do
		cmp "$T/$name".{none,zip}.1/trace/$file || fail "$name: $file depends on the compression"
	done
	(cd "$T" && du -sc --apparent-size "$name".{none,zip,lz4}.1 | sed '$d')
}

start_ptd
record signals "$O/targets/signals.c"
check signals 3
drop signals
# More instructions than a chunk has, as a thread of signals has, too, if it waits for long enough.
seq 24000 >"$T/numbers"
record gzip gzip -1 "$T/numbers"
check gzip 3
[[ $(unzip -Z1 "$T"/gzip.zip.1/trace/drmemtrace.* | wc -l) -gt 1 ]] || fail "gzip: one chunk"
drop gzip
record tree sh -c 'ls /usr | sort | tail -1; exec true'
check tree 2 3 8
stop_ptd

# A disk that is full. A file system of a few pages can be had by root.
if unshare -m true 2>/dev/null && mkdir "$T/small"; then
	for how in none zip lz4; do
		T=$T unshare -m bash -c 'mount -t tmpfs -o size=64k none "$1" && shift && "$@" 2>"$T/stderr"; status=$?
			find "$T/small/out/trace" -type f -printf "%f\n" >"$T/left"; exit $status' - \
			"$T/small" "$O/ptdecode" export drmemtrace "--compress=$how" -o "$T/small/out" "$T/tree"
		[[ $? == 1 ]] && grep -qx "ptdecode: $T/small/out: cannot write: No space left on device" "$T/stderr" ||
			fail "a full disk, $how: $(cat "$T/stderr")"
		[[ -s $T/left ]] && ! grep -v '\.part$' "$T/left" || fail "a full disk, $how: $(cat "$T/left")"
	done
fi
