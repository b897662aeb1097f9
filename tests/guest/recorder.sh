# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts that run ptd in the guest share: the test puts it before its own, and ptd and ptctl
# among the files. Logs go to /out/ptd.log, snapshots to /out.
softpt=/sys/kernel/debug/softpt
export PTD_SOCKET=/run/ptd/control
# For the configuration. Of MTC packets, which come by the clock, emulated CPUs write several MB/s otherwise: they fill
# rings, also while those are copied.
few_mtc=PT=mtc_period=9
ptd= rights=
chmod 755 /root
mkdir -p /run/ptd /out/state
printf '%s\n' root:x:0:0::/root:/bin/sh ptd:x:990:990::/:/bin/false >/etc/passwd
# The level that ptd.service sets.
echo 2 >/proc/sys/kernel/perf_event_paranoid

fail() {
	echo "FAIL: $*"
	cat /out/*.log
	exit 1
}

# wait_for COMMAND...: until it succeeds
wait_for() {
	local i=0
	until "$@" >/dev/null 2>&1; do
		i=$((i + 1))
		[ $i -lt 150 ] || fail "waited in vain for $*"
		sleep 0.2
	done
}

configure() { # LINE-OF-CONFIG...
	printf '%s\n' '[Recorder]' Source=pt SwitchSize=64K TaskSize=256K MaxUse=1T KeepFree=0 "$@" >/root/ptd.conf
}

records_kernel() {
	grep -q "^Trace=.*\(kernel\|all\)" /root/ptd.conf
}

# as_unit UNIT USER COMMAND...: with the capabilities that the unit has, and no others
as_unit() {
	local caps user=$2
	caps=-all$(cat "/etc/$1.caps")
	# As the drop-in for the kernel's code has them: ptd.conf(5).
	[ "$1" != ptd-collector ] || ! records_kernel || caps=$caps,+sys_rawio,+syslog
	shift 2
	exec /usr/bin/setpriv --reuid="$user" --regid=990 --clear-groups --no-new-privs --inh-caps="$caps" --ambient-caps="$caps" \
		--bounding-set="$caps" "$@"
}

collect() {
	while :; do
		(as_unit ptd-collector 991 ptd-collector /run/ptd/collector/socket ptd 2>>/out/collector.log)
		sleep 0.1
	done
}

# launch: ptd and its collector, as their units do it
launch() {
	chown 990:990 /run/ptd
	chown -R 990:990 /out/state
	if [ ! -e /out/collector.log ]; then
		rm -rf /run/ptd/collector
		mkdir /run/ptd/collector
		chown 991:990 /run/ptd/collector
		chmod 750 /run/ptd/collector
		collect &
	elif [ "$rights" != "$(records_kernel; echo $?)" ]; then
		kill $(pidof ptd-collector)
		sleep 0.5
	fi
	rights=$(records_kernel; echo $?)
	wait_for test -S /run/ptd/collector/socket
	as_unit ptd 990 ptd --config /root/ptd.conf --runtime-dir /run/ptd --state-dir /out/state 2>>/out/ptd.log &
	ptd=$!
}

go() {
	launch
	wait_for ptctl status
}

start() { # LINE-OF-CONFIG...
	configure "$@"
	go
}

# told: whether a snapshot has complete task records. If it has not, the time since when it has them is the highest number.
told() {
	local since
	rm -rf /out/first
	snapshot first
	since=$(sed -n 's/^sideband_since_ns=//p' /out/first/manifest)
	[ "$since" -gt 0 ] && [ "$since" -lt 9223372036854775807 ]
}

# start_told LINE-OF-CONFIG...: start, and record from when all tasks that were there before are known
start_told() {
	start "$@"
	ptctl pause || fail "ptctl pause"
	wait_for told
	rm -rf /out/first
	ptctl resume || fail "ptctl resume"
}

stop() {
	kill $ptd
	wait $ptd
}

snapshot() { # NAME
	local id
	id=$(ptctl snapshot 2>/dev/null) || fail "no snapshot $1"
	mv /out/state/snapshots/$id /out/$1
}

status_has() {
	ptctl status | grep -q "$1"
}

log_has() {
	grep -q "$1" /out/ptd.log
}
