#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# DynamoRIO's own tools read what ptdecode writes, without an error: PTD_DRMEMTRACE is the directory of its
# drmemtrace_launcher, record_filter_launcher and scheduler_launcher. Their mix of opcodes is that of the
# decoded instructions, and the tree of calls is the program's own log.
. "$(dirname "$0")/common.sh"
need qemu-x86_64 python3
[[ -n ${PTD_DRMEMTRACE:-} ]] || skip "PTD_DRMEMTRACE does not name a directory of DynamoRIO's tools"
[[ -x $PTD_DRMEMTRACE/drmemtrace_launcher ]] || skip "$PTD_DRMEMTRACE has no drmemtrace_launcher"

# run NAME TOOL COMMAND...: what it prints goes to $T/said.
run() {
	local name=$1 tool=$2
	shift 2
	"$@" >"$T/out" 2>"$T/said" || { tail -5 "$T/said"; fail "$name: $tool"; }
	printf ' %s' "$tool"
}

# judge NAME: all tools take the recording NAME as drmemtrace files.
judge() {
	local name=$1 launcher=$PTD_DRMEMTRACE/drmemtrace_launcher tool
	"$O/ptdecode" -f drmemtrace -o "$T/$name.mem" -f text:nobytes -o "$T/$name.text" "$T/$name" || fail "$name"
	printf '%s:' "$name"
	for tool in invariant_checker basic_counts 'basic_counts -core_sharded' 'basic_counts -core_serial' \
		'basic_counts -jobs 0' schedule_stats syscall_mix func_view 'view -exit_after_records 2000'; do
		# shellcheck disable=SC2086 # a tool and its options
		run "$name" "$tool" "$launcher" -indir "$T/$name.mem" -tool $tool
	done
	mkdir "$T/$name.filtered"
	run "$name" record_filter "$PTD_DRMEMTRACE/record_filter_launcher" -trace_dir "$T/$name.mem/trace" \
		-output_dir "$T/$name.filtered"
	# It drops bytes at addresses that a new program of the process uses again: no more is compared.
	"$O/ptdecode" -f summary "$T/$name.filtered" >"$T/said" || fail "$name: what record_filter wrote is not read"
	run "$name" scheduler "$PTD_DRMEMTRACE/scheduler_launcher" -trace_dir "$T/$name.mem/trace"
	run "$name" opcode_mix "$launcher" -indir "$T/$name.mem" -tool opcode_mix
	echo
	tests/tools/drmemtrace.py mix "$T/$name.text" <"$T/said" || fail "$name: opcode_mix"
	rm "$T/$name.text"
}

start_ptd
record ls ls -l /usr
judge ls
record pipeline sh -c 'ls /usr | sort | tail -1'
judge pipeline
record relay "$O/targets/relay.c" "$O/targets/relay.c" /bin/true
judge relay
drop relay
record throw "$O/targets/calltruth-throw.cc" "$T/throw.calls"
judge throw
run throw func_view "$PTD_DRMEMTRACE/drmemtrace_launcher" -indir "$T/throw.mem" -tool func_view -show_func_trace
tests/tools/drmemtrace.py calls "$T/throw.calls" calltruth-throw.cc <"$T/said" || fail "throw: func_view"
