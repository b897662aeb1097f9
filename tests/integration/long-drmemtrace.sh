#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# drmemtrace directories of many kinds of recordings, as zip files: memtrace-check finds no fault, and what is read
# back is what ran. DynamoRIO's own tools take them without an error: their mix of opcodes is that of the decoded
# instructions, their counts are those of the summary, and their tree of calls is the program's own log. The symbols
# of 1,000 instructions are what addr2line and the jitdumps say.
#
# PTD_DRMEMTRACE is the directory of DynamoRIO's drmemtrace_launcher, record_filter_launcher and scheduler_launcher;
# where it is not set, its tools are left out. ONLY names the parts to be taken.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
. tests/integration/lib/memtrace.sh
need_large
need python3 cc c++ addr2line readelf objcopy strip
tools=${PTD_DRMEMTRACE:-}
[[ -n $tools ]] || echo "PTD_DRMEMTRACE does not name a directory of DynamoRIO's tools: they are left out"
[[ -z $tools || -x $tools/drmemtrace_launcher ]] || skip "$tools has no drmemtrace_launcher"

wanted() {
	[[ -z ${ONLY:-} || " $ONLY " == *" $1 "* ]]
}

# run NAME TOOL COMMAND...: what it prints on stderr, where results go, is in $T/said.
run() {
	local name=$1 tool=$2
	shift 2
	"$@" >"$T/out" 2>"$T/said" || { tail -5 "$T/said"; fail "$name: $tool"; }
	! grep -qE '^WARNING: RETVAL|^ERROR' "$T/said" || { grep -E -m5 '^WARNING|^ERROR' "$T/said"; fail "$name: $tool"; }
	printf ' %s' "${tool// /}"
}

# launch NAME TOOL: the tool comes with its options.
launch() {
	# shellcheck disable=SC2086
	run "$1" "$2" "$tools/drmemtrace_launcher" -indir "$T/$1.mem" -tool $2
}

# count NAME TOTAL: the instructions that a tool counted, in the line that ends with TOTAL, are those of the summary.
count() {
	local counted summed
	counted=$(awk -v "total= $2" 'substr($0, length($0) - length(total) + 1) == total { print $1; exit }' "$T/said")
	summed=$("$O/ptdecode" summary "$T/$1.mem" | sed -n 's/^Instructions: *//p')
	[[ $counted == "$summed" ]] || fail "$1: $2: a tool counts ${counted:-none}, the summary $summed"
}

# view NAME: view prints every instruction of a trace that has less than two million. It takes minutes for larger ones,
# and prints their beginning. Of what it prints, only errors and the end are kept.
view() {
	local statuses n limit=()
	n=$("$O/ptdecode" summary "$T/$1.mem" | sed -n 's/^Instructions: *//p')
	((n < 2000000)) || limit=(-exit_after_records 2000000)
	"$tools/drmemtrace_launcher" -indir "$T/$1.mem" -tool view "${limit[@]}" 2>&1 >"$T/out" |
		awk '/^WARNING: RETVAL|^ERROR/ { print; bad = 1 } { end = past; past = $0 }
			END { print end; print past; exit bad }' >"$T/said"
	statuses=${PIPESTATUS[*]}
	[[ $statuses == "0 0" ]] || { tail -5 "$T/said"; fail "$1: view"; }
	[[ ${#limit[@]} -gt 0 ]] || count "$1" ": total instructions"
	printf ' view'
}

# whole_system NAME: NAME.mem has the kernel's code. DynamoRIO's scheduler takes such files only where each thread is
# analysed alone, so that view, schedule_stats, scheduler_launcher, and all that is by cores or serial refuse them.
whole_system() {
	[[ -n $tools ]] || return 0
	printf '%s:' "$1"
	launch "$1" opcode_mix:basic_counts:invariant_checker:syscall_mix
	count "$1" "total (fetched) instructions"
	mix "$1" "$T/$1.mem"
	record_filter "$1"
	echo
}

# mix NAME WHAT...: opcode_mix, which was launched last, has the opcodes of what ptdecode decodes from WHAT.
mix() {
	local name=$1 mixed
	shift
	mixed=$(tests/tools/drmemtrace.py mix <("$O/ptdecode" --force text --no-bytes "$@") <"$T/said") ||
		fail "$name: opcode_mix"
	printf ' (%s)' "$mixed"
}

# record_filter NAME: what record_filter writes is read, and it is everything. From an archive it drops the bytes of
# an instruction that stand at an address for the second time in a chunk, also where they have changed (its
# process_chunk_encodings()), so that more is compared only of plain files.
record_filter() {
	local name=$1 how n
	n=$("$O/ptdecode" summary "$T/$name.mem" | sed -n 's/^Instructions: *//p')
	[[ ! -d $T/$name ]] || "$O/ptdecode" --force export drmemtrace --compress=none -o "$T/$name.plain" "$T/$name" ||
		fail "$name: plain"
	for how in mem plain; do
		[[ -d $T/$name.$how ]] || continue
		rm -rf "$T/filtered"
		mkdir "$T/filtered"
		run "$name" record_filter "$tools/record_filter_launcher" -trace_dir "$T/$name.$how/trace" \
			-output_dir "$T/filtered"
		"$O/ptdecode" summary "$T/filtered" >"$T/summary"
		[[ $? == @(0|3) ]] || fail "$name: what record_filter wrote is not read"
		[[ $how == mem || $(sed -n 's/^Instructions: *//p' "$T/summary") == "$n" ]] ||
			fail "$name: record_filter lost instructions"
	done
	rm -rf "$T/$name.plain"
}

# all_tools NAME [WHAT...]: all tools take NAME.mem, which has what ptdecode decodes from WHAT, or else from the
# recording NAME. Those that read it in the same way do so at once; func_view reads all threads one after the other, and
# would have opcode_mix do so, too, which then takes the code of one process for that of another at the same address.
all_tools() {
	[[ -n $tools ]] || return 0
	local name=$1 tool
	shift
	[[ $# -gt 0 ]] || set -- "$T/$name"
	printf '%s:' "$name"
	launch "$name" opcode_mix:basic_counts:invariant_checker:syscall_mix
	count "$name" "total (fetched) instructions"
	mix "$name" "$@"
	launch "$name" func_view
	# Without the option, the threads that are left when nine of ten have ended are not read to the end by cores.
	for tool in '-core_sharded -sched_exit_if_fraction_inputs_left 0' \
		'-core_serial -sched_exit_if_fraction_inputs_left 0' '-jobs 0'; do
		launch "$name" "basic_counts $tool"
		count "$name" "total (fetched) instructions"
	done
	launch "$name" schedule_stats
	view "$name"
	record_filter "$name"
	run "$name" scheduler_launcher "$tools/scheduler_launcher" -trace_dir "$T/$name.mem/trace"
	echo
}

# tree NAME LOG OBJECT: the calls that func_view prints are those that the program logged.
tree() {
	[[ -n $tools ]] || return 0
	launch "$1" 'func_view -show_func_trace'
	tests/tools/drmemtrace.py calls "$2" "$3" <"$T/said" || fail "$1: func_view"
}

# program NAME CMD...: a recording of its own.
program() {
	local name=$1
	shift
	wanted "$name" || return 0
	start_ptd
	record "$name" "$@"
	stop_ptd
	write_memtrace "$name"
	all_tools "$name"
}

# columns INPUT: thread, address and symbol of each instruction, in the order of each thread.
columns() {
	"$O/ptdecode" text --no-bytes "$1" | awk '!/^#/ { split($2, id, "/"); print id[2], $5 }' | sort -s -n -k1,1
}

build_id_of() {
	readelf -n "$1" 2>/dev/null | sed -n 's/.*Build ID: //p'
}

# glibc has up to ten names for a function, of which ours is the first of the symbol table that is a function's.
# That is addr2line's, too, where there is no DWARF, which has another one of them.
program ls ls -l /usr
for file in /lib/x86_64-linux-gnu/libc.so.6 /lib64/ld-linux-x86-64.so.2; do
	wanted ls || continue
	id=$(build_id_of "$file")
	objcopy --strip-debug -R .note.gnu.build-id -R .gnu_debuglink "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" "$T/names" || skip "no libc6-dbg"
	symbols_of ls "$(realpath $file)" "$T/names"
done
drop ls
program python3 /usr/bin/python3 -c 'print(sum(range(100000)))'
drop python3
program signals "$O/targets/signals.c"
drop signals
program pipeline sh -c 'ls /usr | sort | tail -1'
drop pipeline
program execchain "$O/targets/relay.c" "$O/targets/relay.c" /bin/true
drop execchain
program execthreads sh -c "$O/targets/execthreads.c; $O/targets/execthreads.c other; true"
drop execthreads
if wanted throw; then
	start_ptd
	record throw "$O/targets/calltruth-throw.cc" "$T/throw.calls"
	stop_ptd
	write_memtrace throw
	all_tools throw
	tree throw "$T/throw.calls" calltruth-throw.cc
	drop throw
fi
if wanted jit; then
	record_jit jit "$O/targets/jit.c" "$T/dumps" close
	write_memtrace jit
	symbols_of_jit jit bytes
	all_tools jit
	tree jit "$T/dumps/calls" '[jit]'
	drop jit
fi
if wanted node && installed node; then
	echo 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		let sum = 0; for (let i = 0; i < 30; i++) sum += fib(16); console.log(sum)' >"$T/script.js"
	record_jit node env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof "$T/script.js"
	write_memtrace node
	symbols_of_jit node
	# The tools would take long for all of it.
	"$O/ptdecode" --force --last 15000000 export drmemtrace -o "$T/nodeend.mem" "$T/node" || fail "node: the end"
	"$O/tools/memtrace-check" "$T/nodeend.mem" || fail "node: its end is not valid"
	all_tools nodeend --last 15000000 "$T/node"
	drop nodeend
	drop node
fi

# Rings that went round: of the branch before a gap it may not be known where it led.
if wanted wrapped; then
	start_ptd Cpus=2 AuxSize=64K
	record wrapped sh -c 'for i in 1 2 3; do ls -l / | sort | head -3; done'
	stop_ptd
	"$O/ptdecode" export drmemtrace -o "$T/wrapped.mem" --also "summary -o $T/summary" "$T/wrapped"
	grep -q '^Overwritten: ' "$T/summary" || fail "wrapped: no ring went round"
	"$O/tools/memtrace-check" "$T/wrapped.mem" || fail "wrapped: the drmemtrace is not valid"
	columns "$T/wrapped" >"$T/recorded"
	columns "$T/wrapped.mem" >"$T/back"
	diff "$T/recorded" "$T/back" >"$T/difference"
	! grep -q '^>' "$T/difference" || { head -5 "$T/difference"; fail "wrapped: other instructions are read back"; }
	n=$(grep -c '^<' "$T/difference") gaps=$(sed -n 's/^Gaps: *//p' "$T/summary")
	files=("$T"/wrapped.mem/trace/drmemtrace.*)
	((n <= gaps + ${#files[@]})) || fail "wrapped: $n instructions are missing"
	echo "wrapped: $(wc -l <"$T/back") instructions, $gaps gaps, $n branches left out"
	all_tools wrapped "$T/wrapped.mem"
	drop wrapped
fi

# A guest with its kernel.
if wanted guest && command -v qemu-system-x86_64 busybox cpio >/dev/null && tests/guest/kernel.sh "$O"; then
	cat tests/guest/recorder.sh - >"$T/script" <<-'EOT'
		echo 1 >$softpt/log
		start_told Trace=all AuxSize=32M SwitchSize=4M $few_mtc
		calls.c >>/out/pids
		snapshot guest
		stop
	EOT
	tests/guest/boot.sh -t 900 -l "$T/log" -o "$T/guests" "$T/script" "$O/ptd" "$O/ptctl" "$O/targets/calls.c" \
		>"$T/err" 2>&1 || { cat "$T/err"; fail "the guest's script failed"; }
	mv "$T/guests/guest" "$T/guest"
	write_memtrace guest without-log
	"$O/tools/exact" -b -p "$(sed -n 1p "$T/guests/pids")" "$T/guest.mem" "$T/log/1" >"$T/exact" ||
		{ tail -5 "$T/exact"; fail "guest: the drmemtrace is not what ran"; }
	echo "guest: $(tail -1 "$T/exact")"
	all_tools guest "$T/guest.mem"
	"$O/ptdecode" export drmemtrace --whole-system -o "$T/kernel.mem" "$T/guest" || fail "whole-system"
	"$O/tools/memtrace-check" "$T/kernel.mem" >"$T/checked" || { head "$T/checked"; fail "whole-system: not valid"; }
	whole_system kernel
	drop guest
fi

# Symbols of programs whose names addr2line knows by DWARF, too.
symbols() {
	wanted "$1" || return 0
	build_program "$@"
	[[ $1 != stripped ]] || {
		cp "$T/bin/stripped" "$T/truth"
		id=$(build_id_of "$T/truth")
		strip "$T/bin/stripped" || fail "strip"
	}
	start_ptd
	record "$1" "$T/bin/$1"
	stop_ptd
	[[ $1 != stripped ]] || objcopy --only-keep-debug "$T/truth" "$T/stripped/objects/.build-id/${id:0:2}/${id:2}.debug"
	write_memtrace "$1"
	[[ $1 == stripped ]] || symbols_of "$1" "$T/bin/$1"
	[[ $1 != stripped ]] || symbols_of "$1" "$T/bin/$1" "$T/truth"
	drop "$1"
}
symbols stripped "${cc[@]}" -no-pie tests/targets/names.c
symbols pie "${cc[@]}" -fPIE -pie tests/targets/names.c
symbols static "${cc[@]}" -static tests/targets/names.c
symbols c++ c++ -O1 -fno-inline -g -pthread tests/targets/throw.cc
! installed rustc || symbols rust rustc -O -C strip=debuginfo tests/targets/names.rs
exit 0
