#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program whose functions come and go in other ways than by call and return: its call tree is as deep as it says.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

start_ptd
record depth "$O/targets/calldepth.cc"
deepest=$(cat "$T/depth.out")
"$O/ptdecode" calls --json "$T/depth" >"$T/calls" || fail "calls"
read -r lowest highest inferred < <(awk '
	{ if (!match($0, /"depth": -?[0-9]+/)) next
	  depth = substr($0, RSTART + 9, RLENGTH - 9) + 0
	  if (depth < lowest) lowest = depth
	  if (depth > highest) highest = depth
	  inferred += /"entered_by": "inference"/ }
	END { print lowest + 0, highest, inferred + 0 }' "$T/calls")
echo "depths from $lowest to $highest, of $deepest; $inferred functions by inference"
# What begins the program is deeper than that, and a child of vfork() begins in the middle.
((lowest >= -3 && highest >= deepest && highest < deepest + 10 && inferred < 20)) || fail "its depths"

# Each of its functions was called as often as it was, although some went on behind jumps.
calls() { awk -v name="$1" -F'"calls": ' '$0 ~ "\"function\": \"([(]anonymous namespace[)]::)?" name "[\"(]" { print $2 + 0 }' "$T/functions"; }
"$O/ptdecode" functions --json --rows=1000 "$T/depth" >"$T/functions" || fail "functions"
for expected in main=1 run=300 by_jump_nested=300 interpret=300 by_list=900 by_pop=300 pushing=300; do
	[[ $(calls "${expected%=*}") == "${expected#*=}" ]] || fail "${expected%=*}: $(calls "${expected%=*}") calls"
done

"$O/ptdecode" export collapsed "$T/depth" >"$T/collapsed" || fail "collapsed"
longest=$(awk '{ n = gsub(/;/, ";"); if (n > most) most = n } END { print most + 1 }' "$T/collapsed")
((longest < deepest + 10)) || fail "a stack of $longest functions"
