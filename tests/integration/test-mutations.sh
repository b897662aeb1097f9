#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Seeded damage to two snapshots: nothing crashes, hangs, or lists what the bytes do not justify.
# N_SMALL and N_LARGE say how many seeds; what goes wrong is kept in KEEP.
. "$(dirname "$0")/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || : "${N_SMALL:=100}" "${N_LARGE:=4}"

start_ptd
record small /bin/true
start_ptd
record large "$O/targets/signals.c"
mkdir -p "${KEEP:=$O/mutations}/small" "$KEEP/large"
"$O/tools/mutate" -n "${N_SMALL:-960}" -k "$KEEP/small" "$T/small" || fail "seeds are kept in $KEEP"
"$O/tools/mutate" -n "${N_LARGE:-40}" -k "$KEEP/large" "$T/large" || fail "seeds are kept in $KEEP"
