#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Seeded damage to the inputs of all golden cases: nothing crashes, hangs, leaks, or lists what the bytes do
# not justify. N says how many seeds, FIRST the first of them; what goes wrong is kept in KEEP.
. "$(dirname "$0")/common.sh"
[[ -z ${PTD_ASAN:-} ]] || : "${N:=2000}"

mkdir -p "${KEEP:=$O/mutations/golden}"
"$O/tools/mutate" -n "${N:-5000}" -s "${FIRST:-1}" -k "$KEEP" tests/golden/*.case ||
	fail "seeds are kept in $KEEP"
