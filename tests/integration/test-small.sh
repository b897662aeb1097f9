#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Small programs from end to end, for sanitized builds too: recorded, decoded exactly by both
# engines, every format written; and what the summary says adds up.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

small() {
	local name=$1 status
	shift
	start_ptd
	record "$name" "$@"
	for engine in block insn; do
		"$O/tools/exact" -e $engine "$T/$name" "$T/$name.log" >"$T/exact" || { cat "$T/exact"; fail "$name"; }
	done
	tail -1 "$T/exact"

	"$O/ptdecode" -f addresses -o "$T/addresses" -f summary -o "$T/summary" \
		-f drmemtrace -o "$T/$name.mem" -f text -o "$T/text" "$T/$name" || fail "$name: ptdecode"
	"$O/tools/memtrace-check" "$T/$name.mem" >/dev/null || fail "$name: the drmemtrace is not valid"
	n=$(awk '/^Instructions:/ { print $2 }' "$T/summary")
	[[ $(stat -c %s "$T/addresses") == $((8 * n)) ]] || fail "$name: addresses and summary differ"
	[[ $(grep -vc '^#' "$T/text") == "$n" ]] || fail "$name: text and summary differ"
	awk '/^CPUs:/ { cpus = 1 } cpus && $1 ~ /^[0-9]+$/ { if ($2 != $3 + $4) exit 1; n += $5 }
		cpus && $1 == "all" { exit !($5 == n && $2 == $3 + $4) }' "$T/summary" ||
		{ cat "$T/summary"; fail "$name: the summary does not add up"; }
	drop "$name"
}

small true /bin/true
small ls ls -l /usr
small signals "$O/targets/signals.c"
