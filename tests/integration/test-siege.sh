#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The control socket in need: many clients at once, one who may not, and 64 hostile ones, half of
# them somebody else's, while `ptctl status` is to answer soon and the recorder is not to grow.
# SIEGE_SECONDS is how long; long-siege.sh makes it a minute.
#
# Alone: 64 clients take the CPUs of other tests.
. "$(dirname "$0")/common.sh"
need python3
umask 022
seconds=${SIEGE_SECONDS:-10}

rss() { awk '/^VmRSS:/ { print $2 }' "/proc/$ptd_pid/status"; }
fds() { ls "/proc/$ptd_pid/fd" | wc -l; }

start_ptd AuxSize=1M SwitchSize=1M
"$O/ptctl" snapshot >/dev/null 2>&1 || fail "snapshot"

echo "--- 32 clients at once"
status=$("$O/ptctl" status --json)
list=$("$O/ptctl" list --json)
[[ $status == *'"snapshots":1,'* && $list == *'"id":'* ]] || fail "$status $list"
for i in {1..32}; do
	for _ in {1..5}; do "$O/ptctl" status --json && "$O/ptctl" list --json; done >"$T/client.$i" 2>&1 &
	clients+=($!)
done
for i in "${clients[@]}"; do wait "$i" || fail "a client of 32: exit status $?: $(cat "$T"/client.*)"; done
for i in {1..5}; do printf '%s\n' "$status" "$list"; done >"$T/expected"
for i in {1..32}; do cmp "$T/expected" "$T/client.$i" || fail "a client of 32: $(cat "$T/client.$i")"; done
echo "320 right answers"

if [[ $(id -u) == 0 ]]; then
	chmod 755 "$T" "$T/run"
	chmod 666 "$T/run/control"
	if command -v gdbus >/dev/null; then
		out=$(setpriv --reuid 65534 --regid 65534 --clear-groups gdbus call --timeout 20 \
			--address "unix:path=$T/run/control" --dest org.ptd --object-path /org/ptd/Recorder1 \
			--method org.ptd.Recorder1.ListSnapshots 2>&1)
		[[ $out == *org.ptd.Error.AccessDenied* ]] || fail "user 65534: $out"
		echo "user 65534: org.ptd.Error.AccessDenied"
	fi
fi

echo "--- 64 hostile clients for $seconds s"
cpu() { awk "{ print \$14 + \$15 }" "/proc/$ptd_pid/stat"; }
cpu_before=$(cpu)
rss_before=$(rss) fds_before=$(fds) peak=0
# Nicely: it is ptd that is to be besieged, not the CPUs that ptctl needs too.
nice -n 19 "$O/tools/siege" "$T/run/control" 64 "$seconds" >"$T/siege.out" 2>&1 &
siege=$!
while kill -0 "$siege" 2>/dev/null; do
	start=${EPOCHREALTIME/[.,]/}
	out=$("$O/ptctl" status 2>&1) || fail "under siege: exit status $?: $out; its log: $(cat "$T/ptd.log")"
	end=${EPOCHREALTIME/[.,]/}
	[[ $out == *"Snapshots: 1 in "* ]] || fail "under siege: $out"
	echo $((end - start))
	now=$(rss)
	[[ $now -le $peak ]] || peak=$now
	sleep 0.01
done >"$T/times" || exit 1
wait "$siege" || fail "siege: exit status $?: $(cat "$T/siege.out")"
cat "$T/siege.out"
sleep 2.5
echo "CPU of ptd: $(($(cpu) - cpu_before)) hundredths of a second"
rss_after=$(rss) fds_after=$(fds)
sort -n "$T/times" >"$T/sorted"
n=$(wc -l <"$T/sorted")
p50=$(sed -n "$(((n + 1) / 2))p" "$T/sorted")
p99=$(sed -n "$(((n * 99 + 99) / 100))p" "$T/sorted")
echo "ptctl status: $n answers, p50 $p50 us, p99 $p99 us, slowest $(tail -1 "$T/sorted") us"
echo "RSS $rss_before KiB before, at most $peak during, $rss_after after; descriptors $fds_before before, $fds_after after"
grep -o "cut off .*\|cannot talk.*" "$T/ptd.log" | sort | uniq -c | head -5
[[ $n -ge $seconds ]] || fail "only $n answers"
[[ $((fds_after * 100)) -le $((fds_before * 105)) ]] || fail "descriptors were left open: $(ls -l "/proc/$ptd_pid/fd")"
# A sanitizer's own bookkeeping takes time and memory.
if [[ -z ${PTD_ASAN:-} ]]; then
	[[ $((rss_after * 100)) -le $((rss_before * 105)) ]] || fail "the recorder has grown"
fi
echo "--- a client that takes his time, while another process connects over and over"
python3 - "$T/run/control" <<'EOF' || fail "the slow client was cut off for the sake of another process"
import os, socket, sys

def dial():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    s.connect(sys.argv[1])
    return s

slow = dial()
if os.fork() == 0:
    held = [dial() for i in range(300)]
    # The oldest is gone: it does have to make room for its process's others.
    os._exit(held[0].recv(1) != b"")
if os.waitstatus_to_exitcode(os.wait()[1]):
    sys.exit("300 connections of a process are all open: this proves nothing")
slow.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\n")
assert b"OK " in slow.recv(1000)
EOF

[[ $(ls "$T/state/snapshots" | wc -l) == 1 ]] || fail "a hostile client took a snapshot"
"$O/ptctl" snapshot >/dev/null 2>&1 || fail "no snapshot afterwards"
echo ok
