#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program maps and unmaps its code as quickly as it can: tens of thousands of records a second. What ptd
# knows of others must reach back as far as before, and the log must name the program.
#
# Alone: how soon ptd answers is measured.
. "$(dirname "$0")/attack.sh"

attack_start pt SidebandMax=8M
attack 14 as_nobody sh -c 'while :; do "$1" repeat 100000; done' sh "$T/bin/storm.c"
# The snapshot is taken in the middle of the attack.
reach=$(awk -F= '{ x[$1] = $2 } END { print int((x["clock_ns"] - x["sideband_since_ns"]) / 1000000) }' \
	"$snapshot/manifest")
echo "sideband reaches back for $reach ms"
[[ $reach -ge 5000 ]] || fail "the storm made ptd forget what was before it"
grep "process [0-9]* (storm.c) maps the same code more than" "$T/ptd.log" || fail "the log does not name the storm"
