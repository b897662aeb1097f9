#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The next Debian, as an early warning: whether everything builds there, and the units, corpora and golden cases. What
# fails there is told, and is no failure of this tree's: it is what a change of that release asks for.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/release.sh
make_root forky

echo "--- make tests"
inside 'make packages-check && make -j"$(nproc)" tests' >"$T/build" 2>&1 ||
	{ tail -n 60 "$T/build"; skip "it does not build: $(grep -m 1 -E 'error:|Unable to locate' "$T/build" || tail -n 1 "$T/build")"; }
grep -c 'warning:' "$T/build" | sed 's/$/ warnings/'

echo "--- units"
inside 'PTD_UNITS=1 tests/run.sh build' >"$T/units" 2>&1
status=$?
grep -E '^FAILED ' "$T/units"
last=$(tail -n 1 "$T/units")
echo "$last"
[[ $last == *" passed, "* ]] || { tail -n 60 "$T/units"; fail "no units ran"; }
[[ $status == 0 ]] || skip "$last: $(sed -n 's/^failed: //p' "$T/units")"
