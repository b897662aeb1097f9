#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What ptd costs in the guest while nobody asks, in a storm of context switches: the CPU time of all its
# threads, and that of the storm beside it.
. "$(dirname "$0")/../integration/common.sh"
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
start AuxSize=4M SwitchSize=1M
perf bench sched pipe -l 1000000000 >/dev/null 2>&1 &
busy() { # PID: ns on a CPU
	cat /proc/$1/task/*/schedstat | awk '{ n += $1 } END { print n }'
}
switches() {
	sed -n 's/^ctxt //p' /proc/stat
}
# Objects are hashed when they are mapped for the first time: until that is over.
until [ "$last" = "$(cat /proc/$ptd/task/*/schedstat | sed 1d)" ]; do
	last=$(cat /proc/$ptd/task/*/schedstat | sed 1d)
	sleep 5
done
before="$(switches) $(busy $ptd) $(sed 's/ .*//' /proc/uptime)"
sleep 20
echo "$before $(switches) $(busy $ptd) $(sed 's/ .*//' /proc/uptime)" >/out/idle
EOF
tests/guest/boot.sh -t 400 -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" /usr/bin/perf >"$T/log" 2>&1 ||
	{ cat "$T/log"; fail "the guest's script"; }
awk '{ printf "%-34s %8.3f %% of a CPU, in the guest, at %d switches a second\n", "idle cost of hardware",
	($5 - $2) / ($6 - $3) / 1e7, ($4 - $1) / ($6 - $3) }' "$T/out/idle"
