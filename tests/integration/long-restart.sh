#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd is killed KILLS times and its keeper as often, at random moments while programs are recorded by the software
# source: some of them while ptd takes the rings over. Each snapshot that is taken after thirteen kills reaches back
# beyond all of them, and has what ran, instruction by instruction. SEED repeats the moments of a run.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

KILLS=${KILLS-50}
RANDOM=${SEED-$$}
echo "SEED=${SEED-$$}"

keeper_pid() {
	pgrep -f -x "ptd-keeper $T/run/keeper/socket"
}

# n_kept: how many descriptors the keeper has.
n_kept() {
	local keeper
	keeper=$(keeper_pid) && ls -l "/proc/$keeper/fd" 2>/dev/null | grep -c memfd
}

# until_ SECONDS WHAT CMD...: wait until CMD succeeds.
until_() {
	local n
	for ((n = 0; n < $1 * 20; n++)); do
		"${@:3}" >/dev/null 2>&1 && return
		sleep 0.05
	done
	cat "$T/ptd.log" >&2
	fail "waited $1 s in vain: $2"
}

is_given() { # N: a keeper has so many descriptors at least
	[[ $(n_kept) -ge $1 ]]
}

# a_while: up to half a second
a_while() {
	local time

	# A subshell would have random numbers of its own, whatever SEED is.
	printf -v time '0.%03d' $((RANDOM % 500))
	sleep "$time"
}

kill_ptd() {
	kill -KILL "$ptd_pid"
	{ wait "$ptd_pid"; } 2>/dev/null
	a_while
	"$O/ptd" --runtime-dir "$T/run" --state-dir "$T/state" --config "$T/ptd.conf" 2>>"$T/ptd.log" &
	ptd_pid=$!
	ptds=$((ptds + 1))
}

kill_keeper() {
	local n
	n=$(n_kept)
	kill -KILL "$(keeper_pid)"
	until_ 20 "another keeper has the rings" is_given "$n"
	keepers=$((keepers + 1))
}

at_work() {
	kill -0 "$recording" 2>/dev/null || fail "the program has ended too early: $(cat "$T/tree.err")"
}

ptds=0 keepers=0
while ((keepers < KILLS)); do
	rm -rf "$T/tree" "$T/tree.log" "$T/enough" "$T/state"
	mkdir "$T/tree.log"
	start_ptd KeepRings=60
	PTD_EMU_LOG=$T/tree.log "$O/ptctl" record -o "$T/tree" -- \
		sh -c "until [ -e '$T/enough' ]; do ls /usr | sort | tail -1; done" >/dev/null 2>"$T/tree.err" & recording=$!
	for n in {1..5}; do
		a_while
		at_work
		kill_ptd
		if ((n % 2)); then
			a_while
			kill_ptd
		fi
		until_ 20 "ptd answers" "$O/ptctl" status
		a_while
		at_work
		kill_keeper
	done
	at_work
	grep "cannot take over" "$T/ptd.log" && fail "it could not take the rings over"
	touch "$T/enough"
	wait "$recording" || fail "record: $(cat "$T/tree.err")"
	for engine in flow insn; do
		"$O/tools/exact" -e "$engine" "$T/tree" "$T/tree.log" >"$T/exact" ||
			{ cat "$T/exact"; fail "$engine: it is not what ran"; }
	done
	echo "$ptds ptds, $keepers keepers killed: $(tail -1 "$T/exact")"
	# The next round begins with new rings.
	kill -KILL "$ptd_pid"
	{ wait "$ptd_pid"; } 2>/dev/null
	ptd_pid=
	kill -KILL "$(keeper_pid)"
done
