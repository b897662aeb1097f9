#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Seeded damage to the packets of all golden cases, seven times one after the other: nothing crashes, hangs,
# leaks, or lists what the bytes do not justify; both engines list the same up to the first error; and threads
# that decode parts, each from one PSB to the next, list what one thread lists. N says how many seeds, FIRST the
# first of them; what goes wrong is kept in KEEP.
. "$(dirname "$0")/lib/common.sh"
[[ -z ${PTD_ASAN:-} ]] || : "${N:=1000}"

mkdir -p "${KEEP:=$O/mutations/golden}"
mapfile -t cases < <(ls tests/golden/*.case)
"$O/tools/mutate" -n "${N:-2000}" -s "${FIRST:-1}" -k "$KEEP" "${cases[@]}" ||
	fail "seeds are kept in $KEEP"
