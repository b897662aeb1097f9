#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Who may record hardware, what ptd says when it may not, and what it does when it cannot have all of
# it: kernel.perf_event_paranoid, capabilities, locked memory; PT that somebody else has; rings that the
# kernel does not have. Besides, test-cpu on a kernel that has the device.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need perf setpriv qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
test-cpu >/out/test-cpu.log 2>&1 || { cat /out/test-cpu.log; fail "test-cpu"; }
tail -1 /out/test-cpu.log

paranoid() {
	echo $1 >/proc/sys/kernel/perf_event_paranoid
}
chmod 755 /root
# as CAPABILITIES COMMAND...: as the service's user
as() {
	local caps=$1
	shift
	chown -R 990:990 /run/ptd /out/state
	exec /usr/bin/setpriv --reuid=990 --regid=990 --clear-groups --inh-caps="-all$caps" --ambient-caps="-all$caps" \
		--bounding-set="-all$caps" --no-new-privs "$@"
}
service=,+perfmon,+ipc_lock
run() { # COMMAND...: until it has said that it is ready, or has ended
	: >/out/ptd.log
	"$@" ptd --config /root/ptd.conf --runtime-dir /run/ptd --state-dir /out/state 2>/out/ptd.log &
	ptd=$!
	i=0
	until log_has "ready:" || ! kill -0 $ptd 2>/dev/null; do
		i=$((i + 1))
		[ $i -lt 100 ] || fail "neither ready nor gone"
		sleep 0.1
	done
}
allowed() { # WHAT COMMAND...
	what=$1
	shift
	run "$@"
	log_has "ready: source pt, 2 CPUs with 64 KiB" || fail "$what: not ready"
	stop
	echo "$what: records"
}
refused() { # WHAT SAYS COMMAND...
	what=$1 says=$2
	shift 2
	run "$@"
	wait $ptd && fail "$what: it runs"
	log_has "$says" || fail "$what: expected \"$says\""
	[ $(wc -l </out/ptd.log) = 1 ] || fail "$what: more than one message"
	echo "$what: $(cat /out/ptd.log)"
}

configure AuxSize=64K
for level in 3 2 -1; do
	paranoid $level
	allowed "paranoid $level, root" env
done
paranoid 3
refused "paranoid 3, service" "perf_event_paranoid is 3.*ptd.service does while it runs" as $service
# What the unit does as root before it starts ptd, and when ptd has ended.
level_is() {
	[ $(cat /proc/sys/kernel/perf_event_paranoid) = $1 ] || fail "$2: the level is not $1"
}
perf-level restore || fail "restore of nothing"
level_is 3 "restored before it was lowered"
perf-level lower || fail "perf-level lower"
level_is 2 lowered
perf-level lower || fail "perf-level lower, again"
allowed "paranoid lowered, service" as $service
perf-level restore || fail "perf-level restore"
level_is 3 restored
perf-level lower
paranoid 1
perf-level restore
level_is 1 "set while ptd ran"
perf-level lower
level_is 1 "low already"
for level in 2 -1; do
	paranoid $level
	allowed "paranoid $level, service" as $service
done
allowed "paranoid -1, no capabilities" as ""
paranoid 2
refused "paranoid 2, no capabilities" "CAP_PERFMON is missing" as ""
paranoid 2
configure AuxSize=4M
ulimit -l 64
refused "paranoid 2, locked memory" "MiB of rings may not be locked.*CAP_IPC_LOCK" as ,+perfmon
echo 0 >/proc/sys/kernel/perf_event_paranoid
configure AuxSize=64K Trace=all
refused "paranoid 0, the kernel's code" "CAP_PERFMON is missing" as ""
paranoid 2
# Its code and symbols are read from /proc/kcore and /proc/kallsyms, by a collector that ptd starts and that has
# its rights, and ends soon after it.
no_collector() {
	! pidof ptd-collector
}
wait_for no_collector
refused "paranoid 2, no names" "CAP_SYSLOG is missing" as $service,+sys_rawio,+dac_read_search
wait_for no_collector
refused "paranoid 2, no memory of the kernel" "CAP_SYS_RAWIO is missing" as $service,+syslog,+dac_read_search
wait_for no_collector
allowed "paranoid 2, service, the kernel's code" as $service,+syslog,+sys_rawio,+dac_read_search

check_says() { # STATUS LINE
	status=0
	ptctl check >/tmp/check || status=$?
	[ $status = $1 ] && grep "^PT *$2" /tmp/check || { cat /tmp/check; fail "ptctl check: status $status, not $1 and \"$2\""; }
}
paranoid 3
check_says 0 "note *perf_event_paranoid: 3; "
paranoid 2
check_says 0 "ok *kernel's PMU: intel_pt, type "
check_says 0 "ok *users: no other program has PT"
echo 1 >/sys/module/softpt/parameters/busy
check_says 1 "missing users: another program has PT"
echo 0 >/sys/module/softpt/parameters/busy

# Somebody else has it: by a flag of the module's, at the start and later; then perf.
: >/out/ptd.log
echo 1 >/sys/module/softpt/parameters/busy
start AuxSize=64K
log_has "CPUs 0-1: somebody else is using Intel PT" || fail "nothing is said of busy CPUs"
status_has "2 whose PT another program uses" || fail "status does not show busy CPUs"
snapshot busy
echo 0 >/sys/module/softpt/parameters/busy
wait_for log_has "2 CPUs have their PT back"
wait_for grep -q "^on 1" $softpt/cpu1/stats
ptctl pause || fail "pause"
status_has paused || fail "status does not show the pause"
perf record -q -o /tmp/perf.data -e intel_pt//u -a sleep 3 || fail "perf cannot have PT in a pause"
perf record -q -o /tmp/perf.data -e intel_pt//u -C 1 sleep 5 &
wait_for grep -q "^on 1" $softpt/cpu1/stats
ptctl resume || fail "resume"
log_has "CPUs 1: somebody else is using Intel PT, probably perf\[[0-9]*\]" || fail "perf is not named"
status_has "1 whose PT another program uses" || fail "status does not show one busy CPU"
wait_for log_has "1 CPUs have their PT back"
stop
cat /out/ptd.log

# Rings that there are not: too large for memory; not in one piece, on a CPU that does not scatter.
: >/out/ptd.log
start AuxSize=512M
grep . /out/ptd.log
[ $(grep -c "AuxSize=524288K: the rings of 2 CPUs would take more than half of the memory" /out/ptd.log) = 1 ] ||
	fail "not said once"
log_has "ready: source pt, 2 CPUs" || fail "not all CPUs"
snapshot smaller
stop
rmmod softpt
insmod /softpt.ko cap_topa_multiple_entries=0 || fail "insmod"
: >/out/ptd.log
start AuxSize=64M
grep . /out/ptd.log
[ $(grep -c "AuxSize=65536K: the kernel has no such ring" /out/ptd.log) = 1 ] || fail "not said once"
log_has "ready: source pt, 2 CPUs with 4096 KiB" || fail "no rings of 4 MiB"
stop
EOF
tests/guest/boot.sh -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" "$O/test-cpu" systemd/perf-level /usr/bin/perf /usr/bin/setpriv ||
	fail "the guest's script: exit status $?"
