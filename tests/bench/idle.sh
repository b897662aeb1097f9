#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What ptd costs while nobody asks, in a storm of context switches: the CPU time of all its threads. Once in
# the guest with its intel_pt PMU, whose one CPU takes 1 ns for each instruction, so that it does not matter
# what else this machine does; and once on this machine as it is, if need be without PT (tools/ptd-nopt),
# in seconds in which nobody starts a program: that is what ptd has to hear of. If there are none, it says so.
. "$(dirname "$0")/../integration/lib/common.sh"
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

RATE=10000
say() { # WHERE NS SWITCHES T
	awk -v where="idle, $1" -v ns="$2" -v switches="$3" -v t="$4" 'BEGIN {
		printf "%-34s %8.4f %% of a CPU, at %d switches a second\n", where, ns / t / 1e5, switches / t * 100 }'
}

cat tests/guest/recorder.sh tests/bench/cost.sh - >"$T/script" <<EOF
start AuxSize=4M SwitchSize=1M
switches.c $RATE &
doze 10
cost \$ptd 20
echo \$ns \$switches \$t >/out/idle
EOF
CPUS=1 ACCEL=tcg,thread=single tests/guest/boot.sh -t 600 -q -icount -q shift=0,sleep=off -o "$T/out" \
	"$T/script" "$O/ptd" "$O/ptctl" "$O/targets/switches.c" >"$T/log" 2>&1 ||
	{ cat "$T/log"; fail "the guest's script"; }
say "guest, 1 ns an instruction" $(cat "$T/out/idle")

[[ $EUID = 0 ]] || skip "only root may record this machine"
ptd=$O/ptd where="this machine"
[[ -e /sys/bus/event_source/devices/intel_pt ]] || ptd=$O/tools/ptd-nopt where="this machine, without PT"
. tests/bench/cost.sh
printf '%s\n' '[Recorder]' Source=pt AuxSize=4M >"$T/ptd.conf"
"$ptd" --config "$T/ptd.conf" --runtime-dir "$T/run" --state-dir "$T/state" 2>"$T/ptd.log" &
ptd_pid=$!
"$O/targets/switches.c" $RATE &
storm=$!
trap 'kill $storm; finish' EXIT
# By then the objects of all programs that run are kept.
doze 20
quiet_ns=0 quiet_switches=0 quiet_t=0 all_ns=0 all_switches=0 all_t=0 all_tasks=0
for ((i = 0; i < 30 && quiet_t < 2000; i++)); do
	kill -0 $ptd_pid || { cat "$T/ptd.log"; fail "ptd ended"; }
	# CPUs are looked at every fourth second.
	cost $ptd_pid 4
	all_ns=$((all_ns + ns)) all_switches=$((all_switches + switches)) all_t=$((all_t + t)) all_tasks=$((all_tasks + tasks))
	[[ $tasks = 0 ]] || continue
	quiet_ns=$((quiet_ns + ns)) quiet_switches=$((quiet_switches + switches)) quiet_t=$((quiet_t + t))
done
if [[ $quiet_t -gt 0 ]]; then
	say "$where" $quiet_ns $quiet_switches $quiet_t
else
	say "$where" $all_ns $all_switches $all_t
	echo "(not idle: $((all_tasks * 100 / all_t)) tasks were started a second, all the time)"
fi
