#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd as its units run it: installed by `make install` over this machine's /usr, in a systemd that is
# PID 1 of namespaces (boot.sh). What records is the software source.
. "$(dirname "$0")/lib/common.sh"
# The plugin is the installed one, not that of the build.
unset PTD_EMU_SO

[[ -z ${PTD_ASAN:-} ]] || skip "sanitizers need what ptd.service forbids"
booter=
machine=

leave() {
	[[ -z $booter ]] || { kill "$booter" && wait "$booter"; } 2>/dev/null
	booter=
}
trap 'leave; finish' EXIT

# inside CMD...: run it in the machine, as root. as USER CMD...: as that user, with its groups.
inside() {
	timeout 120 nsenter -t "$machine" -m -u -i -n -p -C -r -w "$@" </dev/null
}

as() {
	inside setpriv --reuid "$1" --regid "$1" --init-groups "${@:2}"
}

failed() {
	[[ -z $machine ]] || inside journalctl --no-pager -n 60 >&2
	cat "$T/machine/systemd.log" >&2
	fail "$@"
}

# until_ WHAT CMD...: wait until CMD succeeds. No test is about how long.
until_() {
	await "${@:2}" || failed "waited in vain: $1"
}

# expect STATUS TEXT CMD...: the exit status, and a text that the output has.
expect() {
	local status=$1 text=$2 out r
	shift 2
	out=$("$@" 2>&1)
	r=$?
	[[ $r -eq $status ]] || failed "$*: exit status $r instead of $status: $out"
	[[ $out == *"$text"* ]] || failed "$*: expected \"$text\", got: $out"
}

# show PROPERTY: of ptd.service. has PROPERTY PATTERN: whether it matches.
show() {
	inside systemctl show -P "$1" ptd.service
}

has() {
	[[ $(show "$1") == $2 ]]
}

# journal OPTION...: what ptd and systemd said of ptd.service. said TEXT: whether that is in it.
journal() {
	inside journalctl --sync
	inside journalctl -u ptd.service -o cat --no-pager "$@"
}

said() {
	journal | grep -qF -- "$1"
}

third() {
	[[ $(inside ls /var/lib/ptd/snapshots | wc -l) == 3 ]]
}

is_booted() {
	[[ $(inside systemctl is-system-running) == running ]]
}

is_other_process() {
	has MainPID '[1-9]*' && ! has MainPID "$1"
}

echo "--- make install"
make -s install O="$O" DESTDIR="$T/dest" prefix=/usr >"$T/install.log" 2>&1 || fail "$(cat "$T/install.log")"
(cd "$T/dest" && find . -type f | sort) >"$T/installed"
for f in etc/ptd/ptd.conf usr/bin/{ptctl,ptdecode} usr/sbin/ptd usr/lib/ptd/ptd-emu.so \
	usr/lib/systemd/system/ptd.{service,socket} usr/lib/{sysusers,tmpfiles}.d/ptd.conf \
	usr/lib/ptd/perf-level usr/share/man/man8/ptd.8 usr/share/man/man5/ptd.conf.5; do
	grep -qx "./$f" "$T/installed" || fail "$f was not installed"
done

echo "--- boot"
mkdir -p "$T/machine/etc"/{ptd/ptd.conf.d,sysusers.d,systemd/journald.conf.d}
chmod 755 "$T"
mv "$T/dest/usr" "$T/machine/usr"
unit=$T/machine/usr/lib/systemd/system/ptd.service
install -D "$O/tools/sandbox" "$T/machine/usr/lib/ptd-test/sandbox"
cp -r "$T/dest/etc/." "$T/machine/etc"
printf '%s\n' '[Recorder]' Source=emu Cpus=2 AuxSize=1M MaxUse=1G KeepFree=0 Nonsense=1 \
	>"$T/machine/etc/ptd/ptd.conf.d/10-test.conf"
printf '%s\n' 'u ptd-admin - "may"' 'm ptd-admin ptd' 'u ptd-other - "may not"' \
	>"$T/machine/etc/sysusers.d/test.conf"
printf '%s\n' '[Journal]' Storage=volatile >"$T/machine/etc/systemd/journald.conf.d/test.conf"
tests/integration/lib/boot.sh "$T/machine" >"$T/boot" &
booter=$!
for _ in {1..600}; do
	[[ ! -s $T/machine/pid ]] || break
	kill -0 "$booter" 2>/dev/null || break
	sleep 0.1
done
if [[ ! -s $T/machine/pid ]]; then
	wait "$booter"
	[[ $? -eq 77 ]] && booter= && skip "$(cat "$T/boot")"
	failed "systemd was not started: $(cat "$T/boot")"
fi
machine=$(<"$T/machine/pid")
etc=/proc/$machine/root/etc
until_ "systemd has booted" is_booted
echo "booted $(inside systemctl --version | head -1)"
inside grep -q '^ptd:' /etc/passwd || failed "sysusers made no user"
[[ $(inside stat -c '%U %G %a' /var/lib/ptd) == "ptd ptd 750" ]] || failed "tmpfiles made no state directory"
! inside /lib/systemd/systemd-sysctl --cat-config | grep -q '^kernel.perf_event_paranoid' ||
	failed "what was installed sets perf_event_paranoid, whether ptd runs or not"
expect 0 "" inside systemd-analyze verify --man=no ptd.service ptd-keeper.service ptd-collector.service ptd.socket

echo "--- how much of the system it is exposed to"
systemd-analyze security --offline=true --threshold=10 "$unit" >"$T/security" 2>&1 ||
	fail "$(tail -1 "$T/security")"
tail -1 "$T/security"

systemd-analyze security --offline=true --threshold=6 "$(dirname "$unit")/ptd-keeper.service" >"$T/security" 2>&1 ||
	fail "$(tail -1 "$T/security")"
tail -1 "$T/security"
systemd-analyze security --offline=true --threshold=15 "$(dirname "$unit")/ptd-collector.service" >"$T/security" 2>&1 ||
	fail "$(tail -1 "$T/security")"
tail -1 "$T/security"

echo "--- what it may take of the machine"
has TasksMax 64 || failed "TasksMax is $(show TasksMax)"
has IPAddressDeny "*::/0*" || failed "IPAddressDeny is $(show IPAddressDeny)"
half=$(($(awk '/^MemTotal:/ { print $2 }' /proc/meminfo) * 1024 / 2))
max=$(show MemoryMax)
[[ $max != infinity && $max -le $((half + (1 << 20))) ]] || failed "MemoryMax is $max, half of the memory $half"
echo "TasksMax $(show TasksMax), MemoryMax $max, IPAddressDeny $(show IPAddressDeny)"

echo "--- enable, and a first connection"
expect 0 "" inside systemctl enable --now ptd.socket
expect 3 "inactive" inside systemctl is-active ptd.service
expect 0 "Source: emu, idle" inside ptctl status
until_ "it is active" has ActiveState active
until_ "it is ready" has StatusText "Ready, nothing is being recorded (emu, 4 CPUs)."
said '10-test.conf:7: unknown setting "Nonsense", ignoring' || failed "no warning"
[[ $(journal -t ptd -p warning | wc -l) == 1 ]] || failed "not one warning: $(journal -p warning)"
pid=$(show MainPID)
status=$(inside cat "/proc/$pid/status")
uid=$(inside id -u ptd)
[[ $(grep ^Uid: <<<"$status") == Uid:$'\t'$uid$'\t'$uid$'\t'$uid$'\t'$uid ]] || failed "$status"
# IPC_LOCK and PERFMON: 14 and 38.
[[ $(grep ^CapEff: <<<"$status") == *0000004000004000 && $(grep ^CapBnd: <<<"$status") == *0000004000004000 ]] ||
	failed "$status"

echo "--- who may and who may not"
id=$(inside ptctl snapshot 2>/dev/null) || failed "root's snapshot"
expect 0 "$id" as ptd-admin ptctl list
expect 0 "" as ptd-admin ptctl snapshot -o /tmp/admins
expect 4 "Permission denied" as ptd-other ptctl status

echo "--- who asked for what"
# who ACTION USER SNAPSHOT: there is such an entry, with the fields that ptd(8) has.
who() {
	inside journalctl --sync
	inside journalctl -t ptd -o json "MESSAGE_ID=$(sed -n 's/^#define PTD_MESSAGE_CALLER *"\(.*\)".*/\1/p' include/ptd/control.h)" \
		"PTD_ACTION=$1" "PTD_CALLER_UID=$(inside id -u "$2")" "PTD_CALLER_COMM=ptctl" >"$T/who"
	python3 - "$3" "$T/who" <<'END' || failed "no entry of $1 by $2: $(cat "$T/who")"
import json, sys
entries = [json.loads(line) for line in open(sys.argv[2])]
good = [e for e in entries if e.get("PTD_SNAPSHOT", "") == sys.argv[1] and int(e["PTD_CALLER_PID"]) > 1
	and e["PRIORITY"] == "5" and e["_SYSTEMD_UNIT"] == "ptd.service" and "ptctl (process " in e["MESSAGE"]]
sys.exit(not good)
END
}
who snapshot root "$id"
admins=$(inside ptctl list | tail -1 | cut -d' ' -f1)
who snapshot ptd-admin "$admins"
who read ptd-admin "$admins"
inside grep -qx "taken_by_uid=$(inside id -u ptd-admin)" /tmp/admins/manifest || failed "the manifest does not say who took it"
expect 0 "" as ptd-admin ptctl keep "$id"
who keep ptd-admin "$id"
expect 0 "" as ptd-admin ptctl keep --release "$id"
who release ptd-admin "$id"
# The journal has texts that say more.
inside journalctl --update-catalog
inside journalctl -x -t ptd --no-pager "PTD_SNAPSHOT=$id" >"$T/explained"
grep -qF "    ptdecode summary $id" "$T/explained" || failed "journalctl -x does not explain it: $(cat "$T/explained")"
grep -qF "used the flight recorder: snapshot" "$T/explained" || failed "nor who took it: $(cat "$T/explained")"
[[ $(journal -o json | grep -c '"_TRANSPORT":"journal"') -ge 5 ]] || failed "no entries with fields of their own"

expect 4 "Permission denied" as ptd-other ptctl snapshot
[[ $(inside ls /var/lib/ptd/snapshots | wc -l) == 2 ]] || failed "not two snapshots"

echo "--- a unit that fails has a snapshot taken"
systemd-analyze security --offline=true --threshold=10 "$(dirname "$unit")/ptd-snapshot@.service" >"$T/security" 2>&1 ||
	fail "$(tail -1 "$T/security")"
tail -1 "$T/security"
printf '%s\n' '[Unit]' OnFailure=ptd-snapshot@%n.service '[Service]' Type=oneshot ExecStart=/bin/false \
	>"$etc/systemd/system/fails.service"
inside systemctl daemon-reload
expect 1 "" inside systemctl start fails.service
until_ "there is a third snapshot" third
inside ptctl info latest | grep -q '^ *trigger: unit:fails.service$' || failed "$(inside ptctl info latest)"
expect 0 "" inside ptctl rm latest

echo "--- who may not records privately"
expect 0 "you are not in group ptd: recording privately" as ptd-other ptctl record --then summary -- ls /
expect 4 "Permission denied" as ptd-other ptctl list

echo "--- metrics"
expect 0 "" inside systemd-analyze verify --man=no ptd-metrics.socket
systemd-analyze security --offline=true --threshold=10 "$(dirname "$unit")/ptd-metrics@.service" >"$T/security" 2>&1 ||
	fail "$(tail -1 "$T/security")"
tail -1 "$T/security"
inside ip link set lo up 2>/dev/null
expect 0 "" inside systemctl start ptd-metrics.socket
inside python3 -c 'import urllib.request as u; print(u.urlopen("http://127.0.0.1:9921/metrics", timeout=20).read().decode())' \
	>"$T/metrics" 2>&1 || failed "no metrics: $(tail -1 "$T/metrics") $(inside journalctl -u 'ptd-metrics@*' -o cat --no-pager | tail -5)"
grep -qx 'ptd_snapshots_taken_total 3' "$T/metrics" || failed "other metrics: $(cat "$T/metrics")"
expect 0 "" inside systemctl stop ptd-metrics.socket

echo "--- what another user runs is recorded, from where only he can read"
inside install -d -m 700 -o ptd-admin /home/admin
inside install -m 700 -o ptd-admin /usr/bin/python3 /home/admin/program || failed "no program"
as ptd-admin ptctl record -- /home/admin/program -c '
import ctypes, mmap, os, time
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
	mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(b"\xc3" * 100)
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
open("/tmp/runs", "w").close()
while not os.path.exists("/tmp/end"):
	time.sleep(0.1)' >"$T/record" 2>&1 &
until_ "the program runs" inside test -e /tmp/runs
until_ "systemd is told of it" has StatusText "Recording (emu, [48] CPUs)."
expect 0 "" inside ptctl snapshot -o /tmp/whole
inside grep -q '^mem\.[0-9]*=[1-9][0-9]*$' /tmp/whole/manifest ||
	failed "its code in memory is not there: $(inside cat /tmp/whole/manifest)"
inside grep -q '^[0-9a-f]*[[:space:]]/home/admin/program$' /tmp/whole/objects.map ||
	failed "the program is not there: $(inside cat /tmp/whole/objects.map)"
expect 0 " instructions" inside ptdecode summary /tmp/whole
inside touch /tmp/end
wait $! || failed "ptctl record: exit status $?: $(cat "$T/record")"
until_ "systemd is told of its end" has StatusText "Ready*"

echo "--- the collector, which is a process and a user of its own"
collector() { inside systemctl show -P MainPID ptd-collector.service; }
[[ $(inside stat -c '%U %G %a' /run/ptd/collector) == "ptd-collector ptd 750" ]] || failed "others may connect to it"
status=$(inside cat "/proc/$(collector)/status")
# SYS_PTRACE, DAC_READ_SEARCH and CHECKPOINT_RESTORE.
[[ $(grep ^CapEff: <<<"$status") == *0000010000080004 && $(grep ^CapBnd: <<<"$status") == *0000010000080004 ]] ||
	failed "$status"
collected=$(collector)
inside systemctl kill --kill-who=main --signal=KILL ptd-collector.service
other_collector() { [[ $(collector) != 0 && $(collector) != "$collected" ]]; }
until_ "there is another collector" other_collector
inside install -m 755 -o ptd-admin /bin/unlink /home/admin/collected || failed "no program"
expect 1 "" as ptd-admin ptctl record -o /tmp/collected -- /home/admin/collected /tmp/none
inside grep -q '^[0-9a-f]*[[:space:]]/home/admin/collected$' /tmp/collected/objects.map ||
	failed "the program is not there: $(inside cat /tmp/collected/objects.map)"
inside rm -r /tmp/collected /home/admin/collected

echo "--- the rings outlive ptd, however it ends, and its keeper"
# taken_over N: that often.
taken_over() {
	[[ $(journal | grep -cF "took over the rings of the ptd that ran before") == "$1" ]]
}
# holds FILE: what ended before is in a snapshot that is taken now.
holds() {
	expect 0 "" inside ptctl snapshot -o "/tmp/$1"
	inside ptdecode summary "/tmp/$1" >"$T/summary"
	grep -q '[[:space:]]unlink$' "$T/summary" || failed "it is not in the snapshot: $(cat "$T/summary")"
}
keeper() { inside systemctl show -P MainPID ptd-keeper.service; }
[[ $(inside stat -c '%U %a' /run/ptd/keeper) == "ptd 700" ]] || failed "others may connect to the keeper"
status=$(inside cat "/proc/$(keeper)/status")
[[ $(grep ^CapEff: <<<"$status") == *0000000000000000 && $(grep ^CapBnd: <<<"$status") == *0000000000000000 ]] ||
	failed "$status"
expect 1 "" as ptd-admin ptctl record -o /tmp/unlinking -- /bin/unlink /tmp/none
expect 0 "" inside systemctl restart ptd.service
taken_over 1 || failed "it did not take the rings over"
holds restarted
pid=$(show MainPID)
inside systemctl kill --kill-who=main --signal=KILL ptd.service
until_ "it was started again" is_other_process "$pid"
until_ "it is ready" has ActiveState active
taken_over 2 || failed "it did not take the rings over"
holds killed
kept=$(keeper)
inside systemctl kill --signal=KILL ptd-keeper.service
other_keeper() { [[ $(keeper) != 0 && $(keeper) != "$kept" ]]; }
until_ "there is another keeper" other_keeper
sleep 3
expect 0 "" inside systemctl restart ptd.service
taken_over 3 || failed "it did not take the rings over from the other keeper"
holds kept
pid=$(show MainPID)

echo "--- reload"
printf '%s\n' '[Recorder]' SidebandMax=32M MaxUse=1K AuxSize=2M KeepRings=3 >"$etc/ptd/ptd.conf.d/20-test.conf"
expect 0 "" inside systemctl reload ptd.service
has ExecReload "*/usr/bin/ptctl*reload*" || failed "ExecReload is $(show ExecReload)"
said "settings were read again" || failed "systemctl reload came back before the settings were read"
until_ "systemd knows" has ActiveState active
who reload ptd ""
said "AuxSize= was changed: takes effect at restart" || failed "nothing was said of AuxSize="
expect 0 '"sideband_max":33554432' inside ptctl --json status
[[ $(inside ls /var/lib/ptd/snapshots | wc -l) == 1 ]] || failed "MaxUse= was not taken over"
has MainPID "$pid" || failed "it was restarted"
mv "$etc/ptd/ptd.conf" "$etc/ptd/ptd.conf.away"
mkdir "$etc/ptd/ptd.conf"
expect 1 "" inside systemctl reload ptd.service
until_ "systemd knows" has ActiveState active
said "the settings stay as they are" || failed "a reload that failed says nothing"
expect 0 '"sideband_max":33554432' inside ptctl --json status
rmdir "$etc/ptd/ptd.conf"
mv "$etc/ptd/ptd.conf.away" "$etc/ptd/ptd.conf"

echo "--- a recorder that hangs"
mkdir -p "$etc/systemd/system/ptd.service.d"
printf '%s\n' '[Service]' WatchdogSec=8s >"$etc/systemd/system/ptd.service.d/test.conf"
inside systemctl daemon-reload
expect 0 "" inside systemctl restart ptd.service
has WatchdogUSec 8s || failed "the watchdog is not set"
pid=$(show MainPID)
fed=$(show WatchdogTimestampMonotonic)
is_fed() { ! has WatchdogTimestampMonotonic "$fed"; }
until_ "it feeds the watchdog" is_fed
has MainPID "$pid" && has NRestarts 0 || failed "it was killed although it does not hang"
inside systemctl kill --kill-who=main --signal=STOP ptd.service
until_ "it was killed and started again" is_other_process "$pid"
said "Watchdog timeout" || failed "another one runs, but not because of the watchdog"
# Who comes while it is not there waits at the socket.
expect 0 "Source: emu, idle" inside ptctl status
expect 0 "2.0 MiB of PT" inside ptctl status
[[ $(inside ptctl list | grep -c Z-) == 1 ]] || failed "the snapshot is gone"

echo "--- what the unit lets it do"
expect 0 "" inside systemd-run --quiet --uid=ptd-other --unit=other sleep 600
other=$(inside systemctl show -P MainPID other.service)
# sandbox UNIT: a service with the unit's settings, which says what it can do.
sandbox() {
	sed -e 's|^Type=.*|Type=oneshot|' -e '/^Restart\|^WatchdogSec\|^PartOf/d' \
		-e "s|^ExecStart=.*|ExecStart=/usr/lib/ptd-test/sandbox $other /home/admin/program|" \
		"$(dirname "$unit")/$1" >"$etc/systemd/system/sandbox.service"
	inside systemctl daemon-reload
	expect 0 "" inside systemctl start sandbox.service
}
inside touch /tmp/shared
[[ $(</proc/sys/kernel/perf_event_paranoid) -le 2 ]] ||
	echo "perf_event_paranoid is above 2 on this machine: perf itself is not tried"
[[ -e /proc/kcore ]] || echo "this machine has no /proc/kcore: it is not read"
tried() { # what it says now
	inside journalctl --sync
	inside journalctl -u sandbox.service -t sandbox -o cat --no-pager | tail -n 22 >"$T/sandbox"
	[[ $(</proc/sys/kernel/perf_event_paranoid) -le 2 ]] ||
		sed -i 's/^perf-event: EACCES/perf-event: ok/' "$T/sandbox"
	# systemd 252 forbids it by a filter of system calls, newer ones by what the kernel has for that.
	sed -i 's/^write-code: EACCES/write-code: EPERM/' "$T/sandbox"
	[[ -e /proc/kcore ]] || sed -i "s/^kernel-code: ENOENT/kernel-code: $1/" "$T/sandbox"
}
# No unit lets it do these.
cat >"$T/never" <<'END'
write-etc: EROFS
write-cgroup: EROFS
others-signal: EPERM
trace-others: EPERM
write-others: EPERM
internet: EAFNOSUPPORT
user-namespace: EPERM
become-root: EPERM
mount: EPERM
write-code: EPERM
END
# lets UNIT KCORE: what its settings let it do is what stdin says, and nothing of the above. KCORE is what it says
# of the kernel's code on a machine that has none to read.
lets() {
	sandbox "$1"
	tried "$2"
	sort - "$T/never" >"$T/allowed"
	diff "$T/allowed" <(sort "$T/sandbox") || failed "what $1 lets it do has changed"
}
lets ptd.service EACCES <<'END'
perf-event: ok
perf-setting: ok
others-root: EACCES
others-mapping: EACCES
others-file: EACCES
shared-tmp: ENOENT
kernel-names: EACCES
kernel-code: EACCES
kernel-log: EACCES
write-state: ok
write-tmp: ok
page-out-others: EBADF
END
lets ptd-collector.service ENOENT <<'END'
perf-event: EPERM
perf-setting: ENOENT
others-root: ok
others-mapping: ok
others-file: ok
shared-tmp: ok
kernel-names: ENOENT
kernel-code: ENOENT
kernel-log: ENOENT
write-state: EACCES
write-tmp: EROFS
page-out-others: EPERM
END

echo "--- the drop-in for Trace=, as the manual has it"
sed -n '/^\[Service\]$/,/^\.Ed$/p' daemon/ptd.conf.5 | grep -v '^\.Ed' >"$T/drop-in"
grep -q CAP_SYSLOG "$T/drop-in" || fail "the manual has none"
for service in ptd-collector sandbox; do
	install -D -m 644 "$T/drop-in" "$etc/systemd/system/$service.service.d/kernel.conf"
done
inside systemctl daemon-reload
expect 0 "" inside systemctl restart ptd-collector.service
status=$(inside cat "/proc/$(collector)/status")
# And SYS_RAWIO and SYSLOG: 17, 34.
[[ $(grep ^CapEff: <<<"$status") == *00000104000a0004 ]] || failed "$status"
expect 0 "" inside systemctl start sandbox.service
tried ok
# The settings of perf are there, and may be read.
sed 's/^\(kernel-\(names\|code\)\|perf-setting\): .*/\1: ok/; s/^kernel-log: .*/kernel-log: ENODATA/' "$T/allowed" |
	diff - <(sort "$T/sandbox") || failed "the drop-in lets it do something else"
rm "$etc/systemd/system/ptd-collector.service.d/kernel.conf"
inside systemctl daemon-reload
expect 0 "" inside systemctl restart ptd-collector.service

echo "--- stop, and what is left"
id=$(inside ptctl snapshot 2>/dev/null) || failed "snapshot"
expect 0 "" inside systemctl stop ptd.service
has Result success || failed "result: $(show Result)"
[[ ! -e /proc/$machine/root/sys/fs/cgroup/system.slice/ptd.service ]] || failed "its control group is left"
expect 0 "$id" inside ptctl list
until_ "it is active again" has ActiveState active
expect 0 "" inside systemctl stop ptd.socket ptd.service
expect 3 "is it running?" inside ptctl status
# The keeper waits for another recorder for a while.
nobody_left() { [[ -z $(inside pgrep -u ptd) && $(inside systemctl show -P ActiveState ptd-keeper.service) == inactive ]]; }
until_ "no process of ptd is left" nobody_left
errors=$(journal -t ptd -p err | grep -vxF "/etc/ptd/ptd.conf: cannot read it: Is a directory")
[[ -z $errors ]] || failed "errors: $errors"
expect 0 "" inside systemctl enable ptd.service
[[ -L $etc/systemd/system/multi-user.target.wants/ptd.service ]] || failed "it is not started at boot"
expect 0 "" inside systemctl disable ptd.service
[[ ! -e $etc/systemd/system/sockets.target.wants/ptd.socket ]] || failed "the socket stays enabled"
kill "$booter"
wait "$booter" || failed "the machine has left something: $(cat "$T/boot")"
booter=
machine=
echo ok
