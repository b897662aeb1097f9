#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd is killed KILLS times, its keeper and its collector as often, at random moments while the guest is recorded with true PT: some
# of them while ptd takes the rings over. Each snapshot that is taken after fourteen kills reaches back beyond all of
# them, and has what two processes did, instruction by instruction. SEED repeats the moments of a run.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

KILLS=${KILLS-50}
RANDOM=${SEED-$$}
echo "SEED=${SEED-$$}"

cat >"$T/what" <<'EOF'
# The next keeper has the events of both CPUs, and the two files beside them.
given_anew() {
	[ "$(ls -l /proc/$(pidof ptd-keeper)/fd | grep -c "perf_event\|memfd")" = 8 ]
}
workers() {
	cat /proc/$program/task/$program/children
}
# wait_quietly COMMAND...: while the programs stand still, so that they do not fill the rings.
wait_quietly() {
	kill -STOP $(workers)
	wait_for "$@"
	kill -CONT $(workers)
}
kill_ptd() { # FOR: and wait so long before the next one begins
	kill -KILL $ptd
	wait $ptd 2>/dev/null
	sleep $1
	launch
}
kill_keeper() {
	kill -KILL $(pidof ptd-keeper)
	wait_quietly given_anew
}
kill_collector() { # with its workers
	kill -KILL $(pidof ptd-collector)
}
hold_collector() { # FOR
	local held
	held=$(pidof ptd-collector)
	kill -STOP $held
	sleep $1
	kill -CONT $held
}
start_told $few_mtc AuxSize=256M SwitchSize=4M TaskSize=1M KeepRings=60
wait_for given_anew
echo 1 >$softpt/log
guest.c >/out/pids &
program=$!
EOF
cat >"$T/end" <<'EOF'
kill -0 $program || fail "the programs have ended before the last kill"
! log_has "cannot take over" || fail "it could not take the rings over"
kill $(workers)
wait $program || fail "the programs failed"
echo 0 >$softpt/log
rm -rf /out/whole
ptctl snapshot -o /out/whole >/dev/null || fail "snapshot"
stop
rm -rf /out/state
exit 0
EOF

# some_time: sets $time to up to half a second. A subshell would have random numbers of its own, whatever SEED is.
some_time() {
	printf -v time '0.%03d' $((RANDOM % 500))
}

# step COMMAND: "TIME" in it is some time.
step() {
	local command=$1 time
	while [[ $command == *TIME* ]]; do
		some_time
		command=${command/TIME/$time}
	done
	echo "$command"
}

# plan: fourteen kills, and four times a collector that stands still for a while. Every other ptd is killed once more within half a second of its start.
plan() {
	local n
	for n in {1..4}; do
		step "sleep TIME"
		if ((n % 2)); then
			step "kill_ptd TIME; sleep TIME; kill_ptd TIME; wait_quietly ptctl status"
		else
			step "kill_ptd TIME; wait_quietly ptctl status"
		fi
		echo "kill_collector; sleep 0.0$((RANDOM % 90 + 10))"
		step "wait_quietly given_anew; sleep TIME; kill_keeper"
		echo "hold_collector 0.0$((RANDOM % 90 + 10))"
		ptds=$((ptds + 1 + n % 2)) keepers=$((keepers + 1)) collectors=$((collectors + 1))
	done
}

ptds=0 keepers=0 collectors=0
while ((keepers < KILLS)); do
	plan >"$T/plan"
	cat tests/guest/recorder.sh "$T/what" "$T/plan" "$T/end" >"$T/script"
	rm -rf "$T/log" "$T/out"
	MEMORY=3072 tests/guest/boot.sh -l "$T/log" -o "$T/out" -t 1200 "$T/script" "$O/ptd" "$O/ptd-keeper" "$O/ptctl" \
		"$O/targets/guest.c" 2>"$T/err" || { cat "$T/plan" "$T/err" >&2; fail "the guest's script failed"; }
	grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"
	(cd "$T/out/whole" && sha256sum --quiet -c SHA256SUMS) || fail "sums"
	pids=$(sed 's/:.*//; s/^/-p /' "$T/out/pids")
	[[ $(wc -l <"$T/out/pids") = 2 ]] || fail "two processes should have printed: $(cat "$T/out/pids")"
	"$O/tools/exact" $pids "$T/out/whole" "$T/log/1" >"$T/exact" ||
		{ cat "$T/plan" "$T"/out/*.log "$T/out/whole/manifest"; grep -v ^gap "$T/exact"; fail "it is not what ran"; }
	echo "$ptds ptds, $keepers keepers, $collectors collectors killed: $(tail -1 "$T/exact")"
done
