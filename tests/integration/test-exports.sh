#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each export says what -f calls:json says of the same recording.
. "$(dirname "$0")/common.sh"
need qemu-x86_64 python3

start_ptd
record --timing ls ls -l /usr
"$O/ptdecode" -f calls:json -o "$T/calls" -f collapsed -o "$T/time" -f collapsed:instructions -o "$T/insns" "$T/ls" ||
	fail "ptdecode: status $?"
for file in time insns; do
	python3 tests/tools/exported.py "$T/calls" collapsed "$T/$file" ls || fail "collapsed stacks"
done
