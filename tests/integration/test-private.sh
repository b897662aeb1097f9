#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The private recorder of ptctl record: for a user without any group, whether ptd runs or not. It answers, and
# leaves neither a file nor a process, also when ptctl is killed.
. "$(dirname "$0")/lib/common.sh"
need setpriv qemu-x86_64

uid=54321
mkdir -m 1777 "$T/tmp"
chmod 755 "$T"
export TMPDIR=$T/tmp
unset PTD_SOCKET

# The user cannot look into the tree that is tested.
mkdir "$T/bin"
cp "$O"/{ptctl,ptd,ptd-collector,ptdecode,ptd-emu.so} "$T/bin"
program=(python3 -c 'print(1)')
command -v python3 >/dev/null || program=(ls /)

# private ARGUMENT...: ptctl as the user.
private() { as_user $uid env -C / TMPDIR="$TMPDIR" PTD_EMU_SO="$T/bin/ptd-emu.so" "$T/bin/ptctl" "$@"; }

# Nothing of the user's is left: neither a file nor a process. A collector may need a moment to notice that its
# ptd has ended, so a minute means that it does not.
nothing_left() {
	nothing_runs "$1"
	[[ -z $(ls -A "$TMPDIR") ]] || fail "$1: files are left: $(find "$TMPDIR" | head)"
}

nothing_runs() {
	local left
	for _ in {1..600}; do
		left=$(ps -o pid=,args= -u $uid)
		[[ -n $left ]] || break
		sleep 0.1
	done
	[[ -z $left ]] || fail "$1: processes are left: $left"
}

answers() {
	private record --then functions -- "${program[@]}" >"$T/out" 2>"$T/err" || {
		cat "$T/err" >&2
		fail "$1: exit status $?"
	}
	grep -q "$2" "$T/err" || fail "$1: it does not say \"$2\": $(cat "$T/err")"
	grep -q '^Functions: [1-9]' "$T/out" || fail "$1: no functions: $(head -n 5 "$T/out")"
	nothing_left "$1"
}

answers "no ptd runs" "recording privately, emulated"

# Where ptd runs and the user may not use it.
mkdir -p /run/ptd 2>/dev/null && [[ ! -e /run/ptd/control ]] || skip "a ptd runs on this machine"
printf '%s\n' '[Recorder]' Source=emu Cpus=1 KeepRings=0 KeepFree=0 >"$T/ptd.conf"
"$O/ptd" --state-dir "$T/state" --config "$T/ptd.conf" 2>>"$T/ptd.log" &
ptd_pid=$!
for _ in {1..600}; do
	[[ ! -S /run/ptd/control ]] || break
	sleep 0.1
done
chmod 0660 /run/ptd/control
answers "a ptd that is not for the user" "you are not in group ptd"
stop_ptd

# The named recorder is the one that is meant.
private --socket "$T/none" record --then functions -- true 2>"$T/err" && fail "--socket: a private recorder was used"
grep -q "$T/none" "$T/err" || fail "--socket: $(cat "$T/err")"

# What is asked for is checked before the program runs.
private record --then nosuch -- touch "$T/tmp/ran" 2>"$T/err"
[[ $? == 125 && ! -e $T/tmp/ran ]] || fail "--then nosuch: the program ran"
grep -q nosuch "$T/err" || fail "--then nosuch: $(cat "$T/err")"
private record -- touch "$T/tmp/ran" 2>"$T/err"
[[ $? == 125 && ! -e $T/tmp/ran ]] || fail "no --then: the program ran"

# The program's exit status, and a copy.
mkdir -m 700 "$T/tmp/mine" && chown $uid "$T/tmp/mine"
private record -o "$T/tmp/mine" -- sh -c 'exit 7' 2>"$T/err"
[[ $? == 7 ]] || fail "exit status: $(cat "$T/err")"
"$O/ptdecode" -f summary "$T/tmp/mine" >"$T/out" || fail "the copy cannot be decoded: $?"
rm -rf "$T/tmp/mine"
nothing_left copy

# Two at once.
pids=()
for i in 1 2; do
	private record --then summary -- "${program[@]}" >"$T/out.$i" 2>"$T/err.$i" &
	pids+=($!)
done
for i in 1 2; do
	wait "${pids[$((i - 1))]}" || fail "two at once: $(cat "$T/err.$i")"
	[[ -s $T/out.$i ]] || fail "two at once: no output"
done
nothing_left "two at once"

# Killed at any moment: the next one sweeps what is left.
for i in {1..20}; do
	private record --then functions -- "${program[@]}" >/dev/null 2>&1 &
	sleep "0.$((RANDOM % 100 + 10))"
	pkill -KILL -u $uid -x ptctl
	wait $!
done
nothing_runs "20 kills"
answers "after 20 kills" "recording privately"
