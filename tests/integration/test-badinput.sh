#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Bad input: what is said, what is returned, and what is still listed. The table is in
# tests/tools/badinput.c; the snapshot that it spoils is recorded here.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

start_ptd
cp /bin/true "$T/victim"
record snapshot "$T/victim"
rm "$T/victim"
"$O/tools/follow" "$T/snapshot" || fail "the undamaged one is not right"
"$O/tools/badinput" "$O/ptdecode" "$T/snapshot" /victim || fail "bad input is not met as the table says"

echo "--- a bare stream's code with 65,533 overlapping notes"
"$O/tools/attack-notes" "$T" notes || fail "no file is made"
head -c 64 /dev/zero >"$T/pt"
"$O/tools/peak" "$O/ptdecode" --raw-pt "$T/pt" --raw-elf "$T/notes" summary >"$T/out" 2>"$T/peak"
grep -q "^ *all " "$T/out" || fail "no summary: $(cat "$T/out" "$T/peak")"
peak=$(tail -1 "$T/peak")
[[ -n ${PTD_ASAN:-} || $peak -lt 100000 ]] || fail "ptdecode took $peak KiB of memory"
echo "$peak KiB"
