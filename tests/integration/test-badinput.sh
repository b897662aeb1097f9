#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Bad input: what is said, what is returned, and what is still listed. The table is in
# tests/tools/badinput.c; the snapshot that it spoils is recorded here.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

start_ptd
cp /bin/true "$T/victim"
record snapshot "$T/victim"
rm "$T/victim"
"$O/tools/follow" "$T/snapshot" || fail "the undamaged one is not right"
"$O/tools/badinput" "$O/ptdecode" "$T/snapshot" /victim
