#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Triggers on a machine with PT: in a guest whose CPUs' packets are true, each condition that holds gives one
# snapshot, in which the thread executes what was waited for. How many instructions of the thread came after it is
# printed: the program goes on while ptd stops the CPUs.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit
program=$O/targets/when.c

cat tests/guest/recorder.sh - >"$T/script" <<EOF
mount -t tracefs none /sys/kernel/tracing
start_told AuxSize=16M
one() { # NAME CONDITION MODE
	ptctl trigger "\$2" || fail "trigger \$2"
	$program often >/dev/null
	$program \$3 >/out/\$1.tid
	wait_for ptctl info latest
	wait_for sh -c '! ptctl status | grep -q "pending: [1-9]"'
	set -- \$1 \$(ls /out/state/snapshots)
	[ \$# = 2 ] || fail "\$*: not one snapshot"
	mv /out/state/snapshots/\$2 /out/\$1
	ptctl trigger | grep -q armed && fail "\$1: is waited for still"
}
one segv signal:SEGV segv
one core core segv
one usr1 signal:USR1 usr1
one exit exit:3 exit
one enter enter:on_third@$program enter
one return return:on_third@$program enter
one longer longer:600ms:tarry@$program "slow 6000"
one between longer:600ms:tarry,after@$program "slow 6000"
stop
exit 0
EOF
tests/guest/boot.sh -p -t 900 -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" "$program" | tee "$T/log" ||
	fail "the guest's script: exit status $?"

# held NAME PATTERN: the thread executes what has it, and not often before the end.
held() {
	local tid after
	tid=$(sed -n 's/^trigger_tid=//p' "$T/out/$1/manifest")
	[[ $tid == "$(cat "$T/out/$1.tid")" ]] || fail "$1: thread $tid, not $(cat "$T/out/$1.tid")"
	"$O/ptdecode" text --tid "$tid" "$T/out/$1" >"$T/$1.txt" || true
	after=$(grep -v '^#' "$T/$1.txt" | tac | grep -nm1 "$2" | cut -d: -f1)
	[[ -n $after ]] || { tail -5 "$T/$1.txt"; fail "$1: the thread does not execute $2"; }
	echo "$1: $2 is $after instructions before the end of the thread's $(grep -vc '^#' "$T/$1.txt")"
}
held segv ' main+'
held core ' main+'
held usr1 ' on_signal+'
held exit ' \(_exit\|__GI__exit\|exit\)'
# The first instruction is a breakpoint by now, and the kernel has what stood there executed elsewhere.
held enter ' on_third+'
held return ' on_third+'
# The thread sleeps in the function, and has not gone on.
for name in longer between; do
	held $name ' tarry+'
	late=$(awk -F= '$1 == "clock_ns" { c = $2 } $1 == "trigger_ns" { t = $2 } END { print int((c - t) / 1e6) }' \
		"$T/out/$name/manifest")
	echo "$name: the snapshot is $late ms after the limit"
	[[ $late -ge 0 ]] || fail "$name: $late ms after the limit"
	last=$(grep -v '^#' "$T/$name.txt" | grep -oE ' (tarry|after)\+' | tail -1)
	[[ $last == " tarry+" ]] || fail "$name: it went on, to$last"
done
