#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The symbols of marker 101 in drmemtrace files, of 1,000 instructions picked by a seed: of a PIE, as addr2line
# says, and of a JIT that uses its addresses again, as its jitdump says at that time. long-drmemtrace.sh has other
# programs.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
. tests/integration/lib/memtrace.sh
need qemu-x86_64 cc addr2line readelf python3

build_program pie "${cc[@]}" -fPIE -pie tests/targets/names.c
start_ptd
record pie "$T/bin/pie"
stop_ptd
write_memtrace pie
symbols_of pie "$T/bin/pie"
for mode in '' close; do
	record_jit jit "$O/targets/jit.c" "$T/dumps" $mode
	write_memtrace jit
	symbols_of_jit jit bytes
	drop jit
done
