#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd records a guest with true PT: snapshots at seeded random moments of programs that go on, from
# rings that have wrapped, each of which decodes on the host to pieces of what the guest's CPUs ran, with
# nothing missing between them; and one of rings that have not wrapped.
source "$(dirname "$0")/../integration/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

N=${N:-3}
RANDOM=${SEED:-7}
echo "seed ${SEED:-7}, $N moments"
moments=$(for ((i = 0; i < N; i++)); do echo "$((RANDOM % 2)).$((RANDOM % 900 + 100))"; done | tr '\n' ' ')

cat >"$T/script" <<EOF
export PTD_SOCKET=/run/ptd/control
start() { # LINE-OF-CONFIG...
	printf '%s\n' '[Recorder]' Source=pt MaxUse=1T KeepFree=0 "\$@" >/etc/ptd.conf
	ptd --config /etc/ptd.conf --runtime-dir /run/ptd --state-dir /out/state 2>/out/ptd.log &
	ptd=\$!
	until ptctl status >/dev/null 2>&1; do
		kill -0 \$ptd || exit 1
		sleep 0.1
	done
}
stop() {
	kill \$ptd
	wait \$ptd
}
snapshot() { # NAME
	# Hundredths of a second, of which the last may not be over yet.
	cut -d' ' -f1 /proc/uptime | tr -d . >/out/\$1.asked
	ptctl snapshot -o /out/\$1 >/dev/null 2>&1 || echo "snapshot \$1: exit status \$?"
}
# Who runs is known once all tasks were scanned; before that, the time since when it is known is the highest number.
start_told() { # LINE-OF-CONFIG...
	start "\$@"
	until ptctl snapshot -o /tmp/first >/dev/null 2>&1 && ! grep -q "^sideband_since_ns=9223372036854775807" /tmp/first/manifest; do
		rm -rf /tmp/first
	done
	rm -rf /tmp/first
}
mkdir -p /run/ptd /out/state
start_told AuxSize=64M
echo 1 >/sys/kernel/debug/softpt/log
guest.c 10 >/out/pids
echo 0 >/sys/kernel/debug/softpt/log
snapshot whole
stop
# Of MTC packets, which come by the clock, emulated CPUs write so many that they fill such a ring while it is copied.
start_told PT=mtc_period=9 AuxSize=1M
guest.c >/dev/null &
program=\$!
written() {
	awk '/^written/ { n += \$2 } END { print n }' /sys/kernel/debug/softpt/cpu*/stats
}
before=\$(written)
until [ \$((\$(written) - before)) -gt 3000000 ]; do
	sleep 0.2
done
i=0
for moment in $moments; do
	sleep \$moment
	snapshot \$i
	i=\$((i + 1))
done
kill \$program
stop
rm -rf /out/state
cat /out/ptd.log
EOF
tests/guest/boot.sh -l "$T/log" -o "$T/out" -t $((200 + 20 * N)) "$T/script" "$O/ptd" "$O/ptctl" "$O/targets/guest.c" 2>"$T/err" |
	tee "$T/printed" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

# All that the two processes did, from their first instruction to their last.
pids=$(sed 's/:.*//; s/^/-p /' "$T/out/pids")
[[ $(wc -l <"$T/out/pids") = 2 ]] || fail "two processes should have printed: $(cat "$T/out/pids")"
"$O/tools/exact" $pids "$T/out/whole" "$T/log/1" >"$T/exact" || { grep -v ^gap "$T/exact"; fail "the whole of two processes"; }
tail -3 "$T/exact"
base() { # PID: where its libc lies
	"$O/ptdecode" -f sideband "$T/out/whole" | grep -o "PERF_RECORD_MMAP2 $1/.*libc\.so" | grep -o 0x[0-9a-f]* | head -1
}
set -- $(sed 's/:.*//' "$T/out/pids")
[[ -n $(base "$1") && $(base "$1") != "$(base "$2")" ]] || fail "libc should lie elsewhere in each: $(base "$1") $(base "$2")"

for ((name = 0; name < N; name++)); do
	asked=$(cat "$T/out/$name.asked")0000000
	"$O/tools/pieces" -r "$asked" "$T/out/$name" "$T/log/0" >"$T/pieces" || { cat "$T/pieces"; fail "snapshot $name"; }
	echo "snapshot $name: $(tail -1 "$T/pieces")"
	awk -F= '/cpu.*head=/ && $2 > m { m = $2 } END { exit m < 1024 * 1024 }' "$T/out/$name/manifest" ||
		fail "snapshot $name: the rings had not wrapped"
done
