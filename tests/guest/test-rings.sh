#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd on the real kernel's rings: what is in its snapshots is, byte for byte, the last of what the
# "hardware" wrote, minus nothing but what was overwritten; and the manifests' figures say so.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio python3
tests/guest/kernel.sh "$O" || exit

head -c 600000 /dev/urandom >"$T/played"
cat tests/guest/recorder.sh - >"$T/script" <<EOF
# play CPU N: the next N bytes
played0=0 played1=0
play() {
	eval "from=\\\$played\$1"
	tail -c +\$((from + 1)) $T/played | head -c \$2 >\$softpt/cpu\$1/play || fail "cannot play"
	eval "played\$1=\$((from + \$2))"
}

start AuxSize=64K
play 1 10000; snapshot once			# never wrapped
snapshot again					# two in a row, nothing between
play 1 65536; snapshot same			# wrapped exactly to the same head
play 1 60000; snapshot back			# wrapped, the head went back
play 1 7000; snapshot further			# and on
play 1 300000; snapshot lapped			# went round several times in between
play 0 65536; snapshot full			# exactly full, the first time round

echo 0 >/sys/devices/system/cpu/cpu1/online
wait_for status_has "1 offline"
snapshot offline
echo 1 >/sys/devices/system/cpu/cpu1/online
wait_for log_has "CPU 1 is online"
wait_for grep -q "^on 1" \$softpt/cpu1/stats
played1=0; play 1 5000; snapshot online

# So quickly that it can be missed: then it is the time that PT ran there that tells.
echo 0 >/sys/devices/system/cpu/cpu1/online
echo 1 >/sys/devices/system/cpu/cpu1/online
wait_for grep -q "^on 1" \$softpt/cpu1/stats
played1=0; play 1 4000; snapshot quick

# While PT was given up: the records beside it come from the CPU as it is now.
times_off() {
	grep -c "CPU 1 is offline" /out/ptd.log
}
off_again() {
	[ \$(times_off) -gt \$before ]
}
before=\$(times_off)
ptctl pause || fail "pause"
echo 0 >/sys/devices/system/cpu/cpu1/online
wait_for off_again
echo 1 >/sys/devices/system/cpu/cpu1/online
ptctl resume || fail "resume"
mkdir /root/marker
cp /bin/busybox /root/marker
taskset 2 /root/marker/busybox true
snapshot resumed
stop
grep -H dropped \$softpt/cpu*/stats

# While they are copied, more is written: the smaller ring is full again before it has been copied.
start AuxSize=64K
echo 20000 | tee \$softpt/cpu0/rate >\$softpt/cpu1/rate
sleep 1
for i in 1 2 3 4; do snapshot busy\$i; done
stop
start AuxSize=4M
sleep 1
snapshot busy5
stop
cat /out/ptd.log
EOF
tests/guest/boot.sh -o "$T/out" "$T/script" "$T/played" "$O/ptd" "$O/ptctl" | tee "$T/log" ||
	fail "the guest's script: exit status $?"
[[ $(grep -c ":dropped 0" "$T/log") == 2 ]] || fail "the module dropped bytes that were played"

# figure NAME CPU KEY
figure() {
	sed -n "s/^cpu\.$2\.$3=//p" "$T/out/$1/manifest"
}

# check NAME CPU BYTES KEPT: of the first BYTES that were played the last KEPT are there.
check() {
	"$O/tools/auxbytes" "$T/out/$1" "$2" >"$T/bytes" 2>/dev/null || fail "$1: cannot be read"
	head -c "$3" "$T/played" | tail -c "$4" | cmp - "$T/bytes" || fail "$1: other bytes of CPU $2"
	[[ $(figure "$1" "$2" bytes) == "$4" && $(figure "$1" "$2" dropped) == 0 ]] ||
		fail "$1: the manifest says $(grep "^cpu.$2" "$T/out/$1/manifest")"
	(cd "$T/out/$1" && sha256sum --quiet -c SHA256SUMS) || fail "$1: sums"
	echo "$1: $4 bytes of CPU $2 equal, gap at most $(figure "$1" "$2" gap_ns) ns"
}
is() { # NAME CPU KEY VALUE
	[[ $(figure "$1" "$2" "$3") == "$4" ]] || fail "$1: $3 of CPU $2 is $(figure "$1" "$2" "$3"), not $4"
}
check once 1 10000 10000
is once 1 head 10000
check again 1 10000 10000
check same 1 75536 65536
is same 1 head 75536
check back 1 135536 65536
is back 1 head 135536
check further 1 142536 65536
check lapped 1 442536 65536
check full 0 65536 65536
is full 0 head 65536
check offline 1 442536 65536
is offline 1 end offline
check online 1 5000 5000
is online 1 end flushed
check quick 1 4000 4000
grep -q "/root/marker/busybox$" "$T/out/resumed/objects.map" || fail "what CPU 1 ran after the pause is not known"

dropped=0 counted=0
for i in 1 2 3 4 5; do
	for cpu in 0 1; do
		"$O/tools/auxbytes" "$T/out/busy$i" "$cpu" >"$T/bytes" 2>/dev/null || fail "busy$i: cannot be read"
		n=$(python3 tests/guest/counts.py <"$T/bytes") || fail "busy$i: bytes of CPU $cpu are not what was written"
		size=$((i < 5 ? 65536 : 4 << 20))
		kept=$(stat -c %s "$T/bytes")
		bytes=$(figure "busy$i" "$cpu" bytes)
		gone=$(figure "busy$i" "$cpu" dropped)
		# A piece is padded to a multiple of 8.
		((kept == (bytes + 7) / 8 * 8)) || fail "busy$i: $kept bytes, not $bytes"
		((bytes + gone == size)) || fail "busy$i: $bytes and $gone bytes of CPU $cpu are not all of its ring"
		dropped=$((dropped + gone)) counted=$((counted + n))
	done
done
echo "while more was written: $counted packets in order, $dropped bytes dropped"
((counted > 0 && dropped > 0)) || fail "nothing was overwritten, or all of it"
