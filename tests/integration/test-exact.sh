#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What was recorded is decoded to what ran: for each program, with return compression and short TNT packets, and
# without compression and with long ones, by both engines, each thread's instructions equal the plugin's log, all
# of them. Then the same as drmemtrace files, read back by a reader that shares no code with their writer, and as an
# input.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"

programs=(true ls python throw signals leaves)
command_of() {
	case $1 in
	true) cmd=(/bin/true) ;;
	ls) cmd=(ls -lR /usr/include/linux) ;;
	python) cmd=(/usr/bin/python3 -c 'print(sum(range(1000)))') ;;
	throw) cmd=("$O/targets/throw.cc") ;;
	signals | leaves) cmd=("$O/targets/$1.c") ;;
	esac
}

# check_exact ENGINE: what $name and $noretcomp gave is decoded as it was logged.
check_exact() {
	"$O/tools/exact" -e "$1" "$T/$name" "$T/$name.log" >"$T/exact.$1" ||
		{ cat "$T/exact.$1"; fail "$name, $1, noretcomp=$noretcomp"; }
	echo "$name noretcomp=$noretcomp $1: $(tail -1 "$T/exact.$1")"
}

long_tnt=(no yes)
for noretcomp in 0 1; do
	# Two of the large ones once, but in a long run.
	[[ $noretcomp == 0 || -n ${PTD_LONG:-} ]] || programs=(true python signals leaves)
	for name in "${programs[@]}"; do
		command_of "$name"
		# A recorder for each: a snapshot holds what its rings hold, other programs' too.
		start_ptd "PT=noretcomp=$noretcomp" "LongTNT=${long_tnt[noretcomp]}"
		record "$name" "${cmd[@]}"
		each_engine check_exact
		# Threads share CPUs and migrate, or this proves less than it seems to.
		[[ $name != signals ]] ||
			grep -qE '[1-9][0-9]* threads on several cpus, [1-9][0-9]* cpus with several' \
				"$T/exact.flow" || fail "$name: no CPU was shared, or no thread migrated"
		if [[ $noretcomp == 0 ]]; then
			"$O/ptdecode" export drmemtrace -o "$T/$name.mem" "$T/$name" || fail "$name: drmemtrace"
			"$O/tools/memtrace-check" "$T/$name.mem" >"$T/checked" || fail "$name: the drmemtrace is not valid"
			"$O/tools/exact" -m "$T/$name.mem" "$T/$name.log" >"$T/exact" ||
				{ tail -5 "$T/exact"; fail "$name: the drmemtrace is not what ran"; }
			"$O/tools/exact" -b "$T/$name.mem" "$T/$name.log" >"$T/exact" ||
				{ tail -5 "$T/exact"; fail "$name: the drmemtrace is not read back as what ran"; }
			echo "$name drmemtrace: $(tail -1 "$T/exact")"
		fi
		drop "$name"
	done
done
