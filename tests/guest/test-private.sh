#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The private recorder of a user without any group, where there is PT: what its snapshot holds is what the user's
# programs ran, instruction by instruction, from rings of the size that any user may lock; two at once. Where PT is
# not permitted, or another program has it, it says so and emulates.
source "$(dirname "$0")/../integration/lib/common.sh"
source tests/integration/lib/perf.sh
set -o pipefail
need perf qemu-system-x86_64 qemu-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
unset PTD_SOCKET
chmod 1777 /tmp
private() { # NAME COMMAND...: record it as the user
	local name=$1
	shift
	mkdir /out/$name
	chown 54321 /out/$name
	TMPDIR=/tmp /usr/bin/setpriv --reuid=54321 --regid=54321 --clear-groups --no-new-privs ptctl record \
		-o /out/$name -- "$@" >/out/$name.out 2>/out/$name.log
	local status=$?
	grep . /out/$name.log
	grep -s ^- /out/$name/objects.map
	return $status
}
says() { # NAME TEXT
	grep -q "$2" /out/$1.log || fail "$1: it does not say \"$2\""
}
nothing_runs() {
	! pidof ptd ptd-collector
}
nothing_left() {
	[ -z "$(ls /tmp)" ] || fail "files are left: $(ls /tmp)"
	wait_for nothing_runs
}

echo 1 >$softpt/log
private whole guest.c 3 || fail "PT of the user's own"
echo 0 >$softpt/log
says whole "no ptd runs here: recording privately, by PT, the last 4096 KiB of each CPU"
nothing_left
private status sh -c 'exit 7'
[ $? = 7 ] || fail "the command's status"

echo 2 >$softpt/log
private one guest.c 1 &
private two guest.c 1 || fail "two at once"
wait $! || fail "two at once: the other one"
echo 0 >$softpt/log
says one "by PT"
says two "by PT"

# What is not permitted is emulated.
echo 3 >/proc/sys/kernel/perf_event_paranoid
mount -t cgroup2 none /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/small
echo 128M >/sys/fs/cgroup/small/memory.max
(
	echo 0 >/sys/fs/cgroup/small/cgroup.procs
	private paranoid /bin/busybox true
) || fail "paranoid"
says paranoid "PT is here, but not permitted: recording privately, emulated, the last 8192 KiB"
echo 2 >/proc/sys/kernel/perf_event_paranoid
echo 1 >/sys/module/softpt/parameters/busy
private busy /no/such
[ $? = 127 ] || fail "busy"
says busy "PT is here, but not permitted: .*, and end what uses PT"
echo 0 >/sys/module/softpt/parameters/busy
nothing_left
start AuxSize=64K
private member /no/such
[ $? = 127 ] || fail "beside ptd"
says member "PT is here, but not permitted: .* to change this: adduser NAME ptd"
stop
EOF
tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" "$O"/{ptd,ptctl,ptd-emu.so} "$O/targets/guest.c" \
	"$(command -v qemu-x86_64)" 2>"$T/err" | tee "$T/printed" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

exact() { # SNAPSHOT LOG: from the first instruction to the last, of each process
	local pids
	pids=$(sed 's/:.*//; s/^/-p /' "$T/out/$1.out")
	[[ $(wc -l <"$T/out/$1.out") = 2 ]] || fail "$1: two processes should have printed: $(cat "$T/out/$1.out")"
	for engine in flow insn; do
		"$O/tools/exact" -e $engine $pids "$T/out/$1" "$T/log/$2" >"$T/exact" || { cat "$T/exact"; fail "$1, engine $engine"; }
	done
	echo "$1: $(tail -1 "$T/exact")"
}
exact whole 1
exact one 2
exact two 2
chown -R root "$T/out/whole" # perf reads no others'
perf --buildid-dir "$T/out/whole/objects" script -i "$T/out/whole" --itrace=i1i -F $fields --ns 2>"$T/perf.err" >"$T/perf.txt"
judge_list "by perf" "$T/out/whole" 0
judged
grep -q '^cpu.*overwritten=[1-9]' "$T/out/whole/manifest" && fail "whole: the rings were too small"
"$O/ptdecode" summary "$T/out/paranoid" >"$T/summary" || fail "paranoid: $?"
