#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The snapshot of a control group has what the processes in it and their descendants executed, and nothing of other
# processes: by the group's path, by its name, and as a unit. A group that does not exist, or in which nobody runs, is
# an error that says so.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64
root=
for dir in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
	[[ -e $dir/cgroup.procs ]] && root=$dir && break
done
[[ -n $root ]] || skip "no control groups are mounted"
slice=ptd-test-$$.slice unit=ptd-test-$$.service
mkdir -p "$root/$slice/$unit/below" 2>/dev/null || skip "control groups cannot be made in $root"

jobs=()
nothing_below() { [[ -z $(cat "$root/$slice/$unit/below/cgroup.procs") ]]; }

leave() {
	kill "${jobs[@]}" 2>/dev/null && wait "${jobs[@]}" 2>/dev/null
	# What runs under an emulator ends a moment later.
	await nothing_below
	rmdir "$root/$slice/$unit/below" "$root/$slice/$unit" "$root/$slice"
	finish
}
trap leave EXIT

# wait_for FILE
wait_for() {
	await test -s "$1" || fail "$1 did not appear"
}

# spawn NAME [GROUP]: a recorded shell, in the group, that forks a child now and then. Its process is $pid then.
spawn() {
	sh -c 'echo $$ >"$1"; ${2:+eval "echo \$\$ >\"$2\""}; exec "$3" record -o "$4" -- sh -c "while :; do ls / >/dev/null; sleep 0.3; done"' \
		sh "$T/$1.pid" "${2:-}" "$O/ptctl" "$T/$1.recording" >/dev/null 2>&1 &
	jobs+=($!)
	wait_for "$T/$1.pid"
	pid=$(cat "$T/$1.pid")
}

# pids_of PID: it and its descendants that live.
pids_of() {
	local child
	echo "$1"
	for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do pids_of "$child"; done
}

start_ptd Cpus=2
spawn in "$root/$slice/$unit/below/cgroup.procs"
in_pid=$pid
spawn out
out_pid=$pid
sleep 2
out=$(pids_of "$out_pid")

# check OPTIONS...: what the snapshot has is of the group.
check() {
	local dir=$T/snap pids p n=0
	rm -rf "$dir"
	"$O/ptctl" snapshot "$@" -o "$dir" >/dev/null 2>"$T/err" || fail "$*: $(cat "$T/err")"
	pids=$(sed -n 's/^scope_pids=//p' "$dir/manifest" | tr ',\n' '  ')
	for p in $out; do
		[[ " $pids " != *" $p "* ]] || fail "$*: has process $p, which is not in the group: $pids"
	done
	"$O/ptdecode" --last 200 text -o "$T/text" "$dir" 2>"$T/err" || fail "$*: ptdecode: $(cat "$T/err")"
	for p in $(sed -nE 's/.*\bpid ([0-9]+).*/\1/p' "$T/text" | sort -u); do
		[[ " $pids " == *" $p "* ]] || fail "$*: code of process $p is shown"
		n=$((n + 1))
	done
	echo "ptctl snapshot $*: $(wc -w <<<"$pids") processes, $(grep -c . "$T/text") lines of text"
	[[ $(wc -w <<<"$pids") -ge 2 ]] || fail "$*: the group's shell and its children are not there: $pids"
}

check --cgroup "/$slice/$unit"
grep -qx "scope_cgroup=/$slice/$unit" "$T/snap/manifest" || fail "no scope_cgroup"
check --cgroup "$slice"
check --unit "${unit%.service}"
grep -qx "scope_cgroup=$unit" "$T/snap/manifest" || fail "no scope_cgroup"

# refused TEXT OPTIONS...
refused() {
	local text=$1
	shift
	! "$O/ptctl" snapshot "$@" >"$T/out" 2>&1 || fail "$*: no error"
	grep -qF -- "$text" "$T/out" || fail "$*: $(cat "$T/out")"
}
refused "there is no control group ptd-none.service" --unit ptd-none
refused "--unit and --cgroup exclude each other" --unit a --cgroup b
refused 'no name of a unit' --unit a/b
refused "neither the name nor the path of a control group" --cgroup /a/../b
kill "$in_pid"
await nothing_below
refused "no process that is in control group $unit now did run" --unit "$unit"
