#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perf reads ptd's snapshot of hardware as it reads its own recordings: every instruction of a program
# that ran in the guest, and no other, as ptdecode does.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
start $few_mtc AuxSize=4M SwitchSize=256K
guest.c -V 2 >/out/printed
# Objects are hashed when they are mapped for the first time: that is not to be in the rings.
until [ "$last" = "$(cat /proc/$ptd/task/*/schedstat | sed 1d)" ]; do
	last=$(cat /proc/$ptd/task/*/schedstat | sed 1d)
	sleep 2
done
ptctl pause
ptctl resume
echo 1 >$softpt/log
guest.c -V 2 >>/out/printed
snapshot one
stop
EOF
tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" "$O/targets/guest.c" 2>"$T/err" ||
	{ cat "$T/err" "$T/out/ptd.log" >&2; fail "the guest's script failed"; }

"$O/ptdecode" summary "$T/out/one" | sed -n '/^Processes/,/^$/p'
perf --buildid-dir "$T/out/one/objects" script -f -i "$T/out/one" --itrace=i1i \
	-F pid,tid,ip --ns 2>"$T/err" | "$O/tools/perf-addresses" "$T/perf" || { cat "$T/err"; fail "perf script"; }
# Others than the program's began before the log, or went on after the snapshot.
"$O/ptdecode" sideband "$T/out/one" | sed -n 's|.*MMAP2 \([0-9]*\)/.*/guest\.c$|\1|p' | sort -u >"$T/pids"
n=0
for thread in $("$O/tools/emulog" "$T/log/1" | cut -d' ' -f1); do
	grep -qx "${thread%.*}" "$T/pids" || continue
	"$O/tools/emulog" --compare "$T/log/1" "$thread" <"$T/perf/$thread" || fail "perf lists other instructions for $thread"
	n=$((n + 1))
done
((n > 0)) || fail "none of the program's threads was compared"
