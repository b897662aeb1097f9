#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Snapshots of some of what a machine does: of a command and what it starts, of a process, of a CPU; a
# program that lived for a moment, one that is deleted, one in another root and one without a file.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio perf
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
# Its child, which runs now and then, was there before anybody recorded.
mkfifo /root/nothing
mkdir /root/elder
cp /bin/busybox /root/elder/sh
sh -c '/root/elder/sh -c "while :; do read -t 0.02 line; done <>/root/nothing" & wait' &
elder=$!

start_told AuxSize=64K
# So few that the rings still have all of the command, even if it takes seconds.
echo 4 | tee $softpt/cpu0/rate >$softpt/cpu1/rate
# It runs now and then, so that it ran as far back as the rings go.
mkdir /root/other
cp /bin/busybox /root/other/sh
taskset 2 /root/other/sh -c 'while :; do read -t 0.02 line; done <>/root/nothing' &
other=$!

cat >/root/workload <<'END'
#!/bin/sh
mkdir -p /root/short /root/jail
cp /bin/busybox /root/short
cp /bin/busybox /root/jail
/root/short/busybox true	# lives for a moment; its file, until ptd had time to open it
sleep 1
rm -r /root/short
chroot /root/jail /busybox sleep 1
exit 7
END
chmod +x /root/workload
ptctl record -o /out/command -- /root/workload
[ $? = 7 ] || fail "the command's status"
echo 2000 | tee $softpt/cpu0/rate >$softpt/cpu1/rate
ptctl record -- /no/such/command
[ $? = 127 ] || fail "no such command"
ptctl record -- /root/ptd.conf
[ $? = 126 ] || fail "no command"
ptctl record -- sh -c 'kill -9 $$' 2>/out/killed
[ $? = 137 ] || fail "killed"

ptctl snapshot --pid $other -o /out/process >/dev/null || fail "--pid"
ptctl snapshot --pid $elder -o /out/child >/dev/null || fail "--pid of one whose child was there before"
ptctl snapshot --cpu 1 -o /out/cpu >/dev/null || fail "--cpu"
ptctl --json snapshot --pid $other --cpu 0-1 >/out/json || fail "--json"
refused() { # STATUS TEXT ARGUMENT...
	local status=$1 text=$2
	shift 2
	ptctl snapshot "$@" 2>/out/refused
	[ $? = $status ] || fail "snapshot $*: another status than $status"
	grep -q "$text" /out/refused || fail "snapshot $*: $(cat /out/refused)"
}
refused 1 "there is no CPU 9" --cpu 0,9
refused 1 "no list of CPUs" --cpu x
refused 2 "no process ID" --pid x
refused 1 "did not run" --pid 999999
kill $other
stop
exit 0
EOF
tests/guest/boot.sh -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" | tee "$T/log" ||
	fail "the guest's script: exit status $?"

for s in command process child cpu; do
	(cd "$T/out/$s" && sha256sum --quiet -c SHA256SUMS) || fail "$s: sums"
	perf script -i "$T/out/$s" --show-mmap-events --show-task-events >"$T/$s" 2>/dev/null || fail "perf: $s"
done
has() { # SNAPSHOT TEXT
	grep -Eq "$2" "$T/$1" || fail "$1: no $2: $(cat "$T/$1" "$T/out/$1/objects.map")"
}
has_not() {
	! grep -Eq "$2" "$T/$1" || fail "$1: has $2"
}
has command "r-xp /root/short/busybox"
has command "r-xp /busybox"
has_not command "COMM: ptd"
has_not command "/root/other"
grep -q "^scope_pid=" "$T/out/command/manifest" || fail "command: no scope"
kept() { # PATH
	grep -Eq "^(sha256:)?[0-9a-f]{40,64}	$1\$" "$T/out/command/objects.map" ||
		fail "$1 was not kept: $(cat "$T/out/command/objects.map")"
}
kept /root/short/busybox
kept /busybox
has process "r-xp /root/other/sh"
has_not process "COMM: (workload|ptd)"
has child "r-xp /root/elder/sh"
has_not child "/root/other"
grep -q "^cpu.1.bytes=[1-9]" "$T/out/cpu/manifest" || fail "cpu: $(cat "$T/out/cpu/manifest")"
! grep -q "^cpu.0.bytes" "$T/out/cpu/manifest" || fail "cpu: has CPU 0"
grep -q '"pt_bytes":.*[1-9]' <(tr -d ' ' <"$T/out/json") || fail "json: $(cat "$T/out/json")"
echo "command: $(grep -c MMAP2 "$T/command") mappings, $(grep -vc ^- "$T/out/command/objects.map") objects kept"
