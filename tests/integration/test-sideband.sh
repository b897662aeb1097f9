#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Real perf.data files with Intel PT, in the file form and in the pipe form: what ptdecode lists of
# mappings, names, lives and switches is what perf lists, line by line and in its order.
. "$(dirname "$0")/lib/common.sh"
[[ -d $DATA ]] || skip "no ../shared/data: the real files are not part of the project"
need perf

# The thread, the CPU, the time, and what happened.
lines() {
	sed -nE 's|^.*[ /]([0-9]+) +(\[[0-9]+\]) +([0-9.]+: PERF_RECORD_)|\1 \2 \3|p' | tr -s ' ' |
		sed 's/ $//' | grep -v 'PERF_RECORD_[AI]'
}

# list NAME N_SWITCHES: ptdecode's list is compared with perf's in $T/perf.
list() {
	local file=$DATA/perfdata/$1 n
	"$O/ptdecode" sideband "$file" >"$T/raw" || fail "$1: exit status $?"
	lines <"$T/raw" >"$T/ours"
	n=$(grep -c PERF_RECORD_SWITCH "$T/ours")
	echo "$1: $(wc -l <"$T/ours") lines, $n switches; perf: $(wc -l <"$T/perf") lines"
	[[ $n == "$2" ]] || fail "$1: $n switches; expected $2"
	cmp "$T/perf" "$T/ours" || { diff "$T/perf" "$T/ours" | head; fail "$1: perf lists something else"; }
}

perf=(perf script --ns --show-mmap-events --show-task-events --show-switch-events)
file=perf.data.intel_pt-4.14 pipe=perf.data.piped.intel_pt-4.14
# perf also complains about the kernel's symbols, which are not at hand.
"${perf[@]}" -i "$DATA/perfdata/$file" 2>"$T/err" | lines >"$T/perf"
list "$file" 152
# perf wants a pipe, and not a file, there.
# shellcheck disable=SC2002
cat "$DATA/perfdata/$pipe" | "${perf[@]}" -i - 2>"$T/err" | lines >"$T/perf"
list "$pipe" 552
