#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Larger process trees.
. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tree.sh"
need qemu-x86_64 gcc
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"
export PATH=/usr/bin:/bin

tree pipeline 0 0 sh -c 'ls -lR /usr | sort | tail -1'
threads 4
drop pipeline
tree gcc 0 0 gcc -O1 -c -o "$T/exact.o" -Iinclude -I. -D_GNU_SOURCE tests/lib/emulog.c
[[ $n_threads -ge 3 ]] || fail "gcc: its children were not followed"
drop gcc
# More processes than CPUs; some die while they have one.
tree storm 0 5 bash -c 'for i in {1..10}; do (ls / | sort | cat | wc -l) & done; wait
	for i in {1..5}; do sh -c "while :; do :; done" & done; sleep 0.5; kill -9 %1 %2 %3
	sleep 0.2; kill -9 $(jobs -p) 2>/dev/null; wait 2>/dev/null; echo end'
threads 59
drop storm
