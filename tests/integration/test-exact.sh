#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What was recorded is decoded to what ran: for each program, with return compression on and off, and
# by both engines, each thread's instructions equal the plugin's log, all of them. Then the same as
# drmemtrace files, read back by a reader that shares no code with their writer.
. "$(dirname "$0")/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"

programs=(true ls python throw signals)
command_of() {
	case $1 in
	true) cmd=(/bin/true) ;;
	ls) cmd=(ls -lR /usr/include) ;;
	python) cmd=(/usr/bin/python3 -c 'print(sum(range(100000)))') ;;
	throw) cmd=("$O/targets/throw.cc") ;;
	signals) cmd=("$O/targets/signals.c") ;;
	esac
}

for noretcomp in 0 1; do
	start_ptd "PT=noretcomp=$noretcomp"
	for name in "${programs[@]}"; do
		command_of "$name"
		record "$name" "${cmd[@]}"
		for engine in block insn; do
			"$O/tools/exact" -e $engine "$T/$name" "$T/$name.log" >"$T/exact" ||
				{ cat "$T/exact"; fail "$name, $engine, noretcomp=$noretcomp"; }
			echo "$name noretcomp=$noretcomp $(tail -1 "$T/exact")"
		done
		if [[ $noretcomp == 0 ]]; then
			"$O/ptdecode" -f drmemtrace -o "$T/$name.mem" "$T/$name" || fail "$name: drmemtrace"
			"$O/tools/memtrace-check" "$T/$name.mem" || fail "$name: the drmemtrace is not valid"
			"$O/tools/exact" -m "$T/$name.mem" "$T/$name" "$T/$name.log" | tail -1 ||
				fail "$name: the drmemtrace is not what ran"
		fi
		drop "$name"
	done
	stop_ptd
done
