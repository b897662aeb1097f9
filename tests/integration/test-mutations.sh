#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Seeded damage to three snapshots: nothing crashes, hangs, or lists what the bytes do not justify.
# N_SMALL, N_LARGE and N_JIT say how many seeds; what goes wrong is kept in KEEP.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || : "${N_SMALL:=100}" "${N_LARGE:=4}" "${N_JIT:=20}"

start_ptd
record small /bin/true
start_ptd
record large "$O/targets/signals.c"
record_jit jit "$O/targets/jit.c" "$T/dumps"
mkdir -p "${KEEP:=$O/mutations}/small" "$KEEP/large" "$KEEP/jit"
"$O/tools/mutate" -n "${N_SMALL:-160}" -k "$KEEP/small" "$T/small" || fail "seeds are kept in $KEEP"
"$O/tools/mutate" -n "${N_LARGE:-6}" -k "$KEEP/large" "$T/large" || fail "seeds are kept in $KEEP"
"$O/tools/mutate" -n "${N_JIT:-16}" -k "$KEEP/jit" "$T/jit" || fail "seeds are kept in $KEEP"
