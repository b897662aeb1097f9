# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts that run ptd in the guest share: the test puts it before its own, and ptd and ptctl
# among the files. Logs go to /out/ptd.log, snapshots to /out.
softpt=/sys/kernel/debug/softpt
export PTD_SOCKET=/run/ptd/control
mkdir -p /run/ptd /out/state
ptd=

fail() {
	echo "FAIL: $*"
	cat /out/ptd.log
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

# start LINE-OF-CONFIG...: ptd as root
start() {
	configure "$@"
	ptd --config /root/ptd.conf --runtime-dir /run/ptd --state-dir /out/state 2>>/out/ptd.log &
	ptd=$!
	wait_for ptctl status
}

told() {
	rm -rf /out/first
	snapshot first
	grep -q "^sideband_since_ns=[1-9]" /out/first/manifest
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
