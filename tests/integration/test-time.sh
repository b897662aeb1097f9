#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# With MTC and CYC packets, too, what was recorded is decoded to what ran, and now to when: times do
# not go back within a slice, and lie within its thread's stay on its CPU. Without them there are
# fewer times.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"

# judge [--timing] NAME CMD...: sets n_times.
judge() {
	local name timing= engine
	[[ $1 != --timing ]] || { timing=$1; shift; }
	name=$1
	shift
	record $timing "$name" "$@"
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/$name" "$T/$name.log" >"$T/exact" ||
			{ cat "$T/exact"; fail "$name, $engine"; }
		echo "$name $engine: $(tail -1 "$T/exact")"
	done
	n_times=$(tail -1 "$T/exact" | sed 's/.* \([0-9]*\) times.*/\1/')
}

start_ptd
judge true /bin/true
plain=$n_times
drop true
for pt in mtc=1 cyc=1 mtc=1,mtc_period=0,cyc=1; do
	start_ptd "PT=$pt"
	judge true /bin/true
	[[ $n_times -gt $((4 * plain)) ]] || fail "$pt: $n_times times, not more than four times the $plain without"
	if command -v perf >/dev/null; then
		# Samples of tracepoints have no address.
		perf script -i "$T/true" --itrace=i1i -F pid,tid,ip --ns 2>"$T/perf.err" | grep -vE '/[0-9]+ +0( |$)' |
			"$O/tools/perf-addresses" "$T/true.perf" || fail "$pt: perf script"
		[[ ! -s $T/perf.err ]] || { cat "$T/perf.err"; fail "$pt: perf complains"; }
		thread=$("$O/tools/emulog" "$T/true.log" | cut -d' ' -f1)
		"$O/tools/emulog" --compare "$T/true.log" "$thread" <"$T/true.perf/$thread" ||
			fail "$pt: perf lists other instructions"
	fi
	drop true
done

# A program by itself, and what it executes; another one that runs at the same time has no such packets.
start_ptd
for name in throw signals ls python; do
	case $name in
	throw) cmd=("$O/targets/throw.cc") ;;
	signals) cmd=("$O/targets/signals.c") ;;
	ls) cmd=(ls -l /usr/include) ;;
	python) cmd=(/usr/bin/python3 -c 'print(sum(range(100)))') ;;
	esac
	[[ -z ${PTD_LONG:-} || $name != ls ]] || cmd=(ls -lR /usr/include)
	[[ -z ${PTD_LONG:-} || $name != python ]] || cmd=(/usr/bin/python3 -c 'print(sum(range(100000)))')
	judge --timing $name "${cmd[@]}"
	grep -q '^pt_config=0x100e603$' "$T/$name/manifest" || fail "$(grep pt_config "$T/$name/manifest")"
	drop $name
done
judge --timing env env /bin/true
[[ $n_times -gt $((4 * plain)) ]] || fail "env: $n_times times, the program that it executes has none"
drop env
judge true /bin/true
[[ $n_times -lt $((2 * plain)) ]] || fail "$n_times times without --timing, not $plain"
