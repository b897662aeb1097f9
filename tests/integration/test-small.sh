#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Small programs from end to end, for sanitized builds too: recorded, decoded exactly by both
# engines, every format written; and what the summary says adds up.
. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tree.sh"
need qemu-x86_64

small() {
	local name=$1 status
	shift
	start_ptd
	record "$name" "$@"
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/$name" "$T/$name.log" >"$T/exact" || { cat "$T/exact"; fail "$name"; }
	done
	tail -1 "$T/exact"

	"$O/ptdecode" export addresses -o "$T/addresses" --also "summary -o $T/summary" \
		--also "export drmemtrace -o $T/$name.mem" --also "text -o $T/text" --also "sideband -o $T/sideband" "$T/$name" ||
		fail "$name: ptdecode"
	"$O/tools/memtrace-check" "$T/$name.mem" >"$T/checked" || fail "$name: the drmemtrace is not valid"
	"$O/tools/exact" -b "$T/$name.mem" "$T/$name.log" >"$T/exact" || { cat "$T/exact"; fail "$name: read back"; }
	n=$(awk '/^Instructions:/ { print $2 }' "$T/summary")
	[[ $(stat -c %s "$T/addresses") == $((8 * n)) ]] || fail "$name: addresses and summary differ"
	[[ $(grep -vc '^#' "$T/text") == "$n" ]] || fail "$name: text and summary differ"
	[[ $(grep -c "PERF_RECORD_COMM exec: " "$T/sideband") == 1 &&
		-z $(grep -vE "PERF_RECORD_|raw_syscalls:sys_enter|signal:signal_deliver" "$T/sideband") ]] ||
		{ head "$T/sideband"; fail "$name: the sideband does not have its start"; }
	LC_ALL=C sort -s -c -k3,3n "$T/sideband" || fail "$name: the sideband is not in the order of time"
	awk '/^CPUs:/ { cpus = 1 } cpus && $1 ~ /^[0-9]+$/ { if ($2 != $3 + $4) exit 1; n += $5 }
		cpus && $1 == "all" { exit !($5 == n && $2 == $3 + $4) }' "$T/summary" ||
		{ cat "$T/summary"; fail "$name: the summary does not add up"; }
	drop "$name"
}

small true /bin/true
small ls ls -l /usr
small signals "$O/targets/signals.c"

# Processes that fork, execute programs and scripts, and end with their threads: test-tree has more of them.
tree pipeline 3 0 sh -c 'ls /usr | sort | tail -1; exit 3'
threads 4
drop pipeline
printf '#! /bin/sh -e\necho "$0" "$@"; env | grep -c ^A=\n' >"$T/script.sh"
chmod +x "$T/script.sh"
tree script 0 0 env A=1 LD_LIBRARY_PATH=/nowhere sh -c "'$T/script.sh' 'a b' c; ls /proc/self/fd | wc -l"
drop script
tree daemonize 7 0 "$O/targets/daemonize.c"
threads 3
drop daemonize
tree execthreads 5 0 "$O/targets/execthreads.c" other
drop execthreads
tree relay 0 0 "$O/targets/relay.c" "$O/targets/relay.c" /bin/true
drop relay
