#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The private recorder of ptctl record: for a user without any group, whether ptd runs or not. It answers, and
# leaves neither a file nor a process nor a socket, also when ptctl or ptd is killed. Where memory is short, it answers
# or says why not. With PT: tests/guest/test-private.sh.
. "$(dirname "$0")/lib/common.sh"
need setpriv qemu-x86_64

# It needs the place of the machine's own ptd, one test at a time.
mkdir -p /run/ptd 2>/dev/null && exec 8</run/ptd && flock 8 && [[ ! -e /run/ptd/control ]] || skip "a ptd runs on this machine"

uid=$((100000 + $$ % 100000)) # whose processes are all of this test
mkdir -m 1777 "$T/tmp"
chmod 755 "$T"
export TMPDIR=$T/tmp
unset PTD_SOCKET

# The user cannot look into the tree that is tested.
mkdir "$T/bin"
cp "$O"/{ptctl,ptd,ptd-collector,ptdecode} "${PTD_EMU_SO:-$O/ptd-emu.so}" "$T/bin"
program=(ls /)

# private ARGUMENT...: ptctl as the user.
private() { as_user $uid env -C / TMPDIR="$TMPDIR" PTD_EMU_SO="$T/bin/ptd-emu.so" "$T/bin/ptctl" "$@"; }

# Nothing of the user's is left: no file, process or socket. A collector may need a moment to notice that its
# ptd has ended, so a minute means that it does not.
nothing_left() {
	nothing_runs "$1"
	[[ -z $(ls -A "$TMPDIR") ]] || fail "$1: files are left: $(find "$TMPDIR" | head)"
}

nothing_runs() {
	local left
	for _ in {1..600}; do
		left=$(ps -o pid=,args= -u $uid; grep "$TMPDIR" /proc/net/unix)
		[[ -n $left ]] || break
		sleep 0.1
	done
	[[ -z $left ]] || fail "$1: processes or sockets are left: $left"
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

begun=$(date +%s%N)
answers "no ptd runs" "no ptd runs here: recording privately, emulated, the last [0-9]* KiB of each CPU"
took=$((($(date +%s%N) - begun) / 1000000)) # ms
echo "it took $took ms"

# Under a control group that allows little memory: a recording of more PT than that, or it is said what was killed.
make_group() {
	for group in /sys/fs/cgroup/memory/ptd-test-$$ /sys/fs/cgroup/ptd-test-$$ /sys/fs/cgroup/unified/ptd-test-$$; do
		mkdir "$group" 2>/dev/null || continue
		for limit in "$group"/memory.{limit_in_bytes,max}; do
			[[ ! -e $limit ]] || return 0
		done
		rmdir "$group"
	done
	return 1
}
limited() { # MIB
	echo $(($1 << 20)) >"$limit" || fail "cannot limit memory"
	(
		echo $BASHPID >"$group/cgroup.procs"
		private record --then summary -- "${long[@]}" >"$T/out" 2>"$T/err"
	)
	local status=$?
	if [[ $status == 0 ]]; then
		grep -q '^Instructions: *[1-9]' "$T/out" || fail "$1 MiB: $(cat "$T/out")"
		echo "$1 MiB of memory: $(grep -o 'the last .* CPU' "$T/err")"
	else
		grep 'was killed by signal' "$T/err" || fail "$1 MiB: exit status $status, and it does not say why: $(cat "$T/err")"
	fi
	nothing_left "$1 MiB"
}
long=(sh -c 'i=0; while [ $i -lt 90000 ]; do i=$((i + 1)); done') # some 100 MB of PT
if make_group; then
	limited 128
	limited 24
	rmdir "$group"
	echo "2 of 2 limits of memory were tried"
else
	echo "0 of 2 limits of memory were tried: no memory control group can be made"
fi

# Where ptd runs and the user may not use it.
printf '%s\n' '[Recorder]' Source=emu Cpus=1 KeepRings=0 KeepFree=0 >"$T/ptd.conf"
"$O/ptd" --state-dir "$T/state" --config "$T/ptd.conf" 2>>"$T/ptd.log" &
ptd_pid=$!
for _ in {1..600}; do
	[[ ! -S /run/ptd/control ]] || break
	sleep 0.1
done
chmod 0660 /run/ptd/control
answers "a ptd that is not for the user" "you are not in group ptd"
# One who may use it need not.
PTD_EMU_SO=$T/bin/ptd-emu.so "$T/bin/ptctl" record --private --then summary -- true >"$T/out" 2>"$T/err" ||
	fail "--private: $(cat "$T/err")"
grep -q '^ptctl: recording privately, emulated' "$T/err" || fail "--private: $(cat "$T/err")"
[[ -z $(ls "$T/state/snapshots") ]] || fail "--private: ptd has the snapshot"
nothing_left "--private"
stop_ptd

# The named recorder is the one that is meant.
private --socket "$T/none" record --then functions -- true 2>"$T/err" && fail "--socket: a private recorder was used"
grep -q "$T/none" "$T/err" || fail "--socket: $(cat "$T/err")"

# What is asked for is checked before the program runs.
private record --then nosuch -- touch "$T/tmp/ran" 2>"$T/err"
[[ $? == 125 && ! -e $T/tmp/ran ]] || fail "--then nosuch: the program ran"
grep -q nosuch "$T/err" || fail "--then nosuch: $(cat "$T/err")"
private record --then 'functions --max-depth=3' -- touch "$T/tmp/ran" 2>"$T/err"
[[ $? == 125 && ! -e $T/tmp/ran ]] && grep -q "functions has no option --max-depth" "$T/err" || fail "an option of another verb: $(cat "$T/err")"
private record -- touch "$T/tmp/ran" 2>"$T/err"
[[ $? == 125 && ! -e $T/tmp/ran ]] || fail "no --then: the program ran"

# The program's exit status, and a copy.
mkdir -m 700 "$T/tmp/mine" && chown $uid "$T/tmp/mine"
private record -o "$T/tmp/mine" -- sh -c 'exit 7' 2>"$T/err"
[[ $? == 7 ]] || fail "exit status: $(cat "$T/err")"
"$O/ptdecode" summary "$T/tmp/mine" >"$T/out" || fail "the copy cannot be decoded: $?"
rm -rf "$T/tmp/mine"
nothing_left copy

# A verb with options, one with a blank; and an export that is a directory.
private record --then "latency --json --function='no such'" -- true >"$T/out" 2>"$T/err" || fail "--then latency: $(cat "$T/err")"
grep -q '"wanted": "no such"' "$T/out" || fail "--then latency: $(cat "$T/out")"
private record --then 'export drmemtrace' -o "$T/tmp/mem" -- true 2>"$T/err" || fail "--then drmemtrace: $(cat "$T/err")"
ls "$T"/tmp/mem/trace/*.trace.zip >/dev/null || fail "--then drmemtrace: nothing"
rm -rf "$T/tmp/mem"
nothing_left "verbs"

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
killed() { # PROGRAM
	local ms=$((RANDOM % took))
	private record --then functions -- "${program[@]}" >/dev/null 2>"$T/err" &
	sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
	pkill -KILL -u $uid -x "$1"
	wait $!
}
for i in {1..20}; do
	killed ptctl
done
echo "20 kills left $(ls "$TMPDIR" | wc -l) directories, which the next one removes"
nothing_runs "20 kills"
answers "after 20 kills" "recording privately"
for i in {1..5}; do
	killed ptd && continue # it had ended, or not begun
	grep -q 'private recorder was killed by signal 9' "$T/err" || fail "a killed ptd: $(cat "$T/err")"
	nothing_left "a killed ptd"
done
