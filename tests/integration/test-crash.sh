#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A recorder that dies, or whose disk or descriptors fail, in the middle of a snapshot. strace kills
# it on entry to a system call, or lets the call fail. A point is a thread (the event loop, or the
# one that writes), the name of a call and the how many-th call of that name it is; the points are
# those of a snapshot that is watched first. Afterwards there is a whole snapshot or none, and the
# next one is taken.
#
# A seeded sample (PTD_SEED) is tried; with CRASH_POINTS=all, which long-crash.sh sets, every point.
. "$(dirname "$0")/lib/common.sh"
need strace qemu-x86_64
points=${CRASH_POINTS:-20}
seed=${PTD_SEED:-1}
spool=$T/state/snapshots

# attach OPTION...: strace the recorder in the background.
attached_or_ended() { grep -q attached "$T/strace.err" || ! kill -0 "$strace_pid"; }

attach() {
	: >"$T/strace.err"
	strace -o "$T/strace.out" "$@" -p "$ptd_pid" 2>"$T/strace.err" &
	strace_pid=$!
	await attached_or_ended
	! grep -q attached "$T/strace.err" || return 0
	wait "$strace_pid"
	! grep -qi 'not permitted' "$T/strace.err" || skip "ptrace is not permitted here: $(head -1 "$T/strace.err")"
	fail "strace does not attach: $(cat "$T/strace.err")"
}

detach() {
	{ kill "$strace_pid"; wait "$strace_pid"; } 2>/dev/null
}

# A recorder whose death the shell does not report.
start() {
	start_ptd AuxSize=4M SwitchSize=1M
	disown "$ptd_pid"
}

# gone N: has it ended, or does it within N hundredths of a second?
gone() {
	local i
	for ((i = 0; i < $1; i++)); do
		kill -0 "$ptd_pid" 2>/dev/null || { ptd_pid=; return 0; }
		sleep 0.01
	done
	return 1
}

# Something to snapshot: what is in the rings when a program has run.
fill() {
	drop true
	record true /bin/true
	rm -rf "${spool:?}"/*
}

# whole ID: is it all there, is nothing in it that is not hashed, and can it be decoded?
whole() {
	local dir=$spool/$1
	(cd "$dir" && sha256sum --quiet --strict -c SHA256SUMS) || fail "$where: SHA256SUMS of $1"
	[[ $(find "$dir" -type f | wc -l) == $(($(wc -l <"$dir/SHA256SUMS") + 1)) ]] ||
		fail "$where: $1 has files that are not in SHA256SUMS"
	"$O/ptdecode" summary -o "$T/summary" "$dir" 2>"$T/decode.err" || fail "$where: $1: $(cat "$T/decode.err")"
	awk '/^Instructions:/ { n = $2 } END { exit !(n > 10000) }' "$T/summary" || fail "$where: no instructions in $1"
}

# nothing_partial: no hidden directory, and what can be seen is whole. Sets $n to how many there are.
nothing_partial() {
	local id
	n=0
	for id in $(ls -A "$spool"); do
		[[ $id != .* ]] || fail "$where: left $id"
		whole "$id"
		n=$((n + 1))
	done
}

snapshot() {
	timeout $HUNG_S "$O/ptctl" snapshot >"$T/said" 2>"$T/said.err"
}

# list_points TRACE: "loop NAME N" and "writer NAME N" for the calls of both threads, with a fourth
# word "disk" for what is done to a file of the state directory and may fail. The futex by which the
# loop waits for the writer's end can be reached or not, as it comes.
list_points() {
	awk -v loop="$ptd_pid" -v state="<$T/state" '$2 ~ /^[a-z_0-9]+\(/ {
		split($2, part, "(")
		if (part[1] == "futex") next
		disk = index($0, state) && part[1] !~ /^(close|lseek|fcntl)$/
		print ($1 == loop ? "loop" : "writer"), part[1], ++n[$1, part[1]], disk ? "disk" : ""
	}' "$1"
}

# The first lines, and a sample of the others.
sample() {
	[[ $points == all ]] && cat && return
	awk -v seed="$seed" -v first="$1" 'BEGIN { srand(seed) } { print NR <= first ? -1 : rand(), $0 }' |
		sort -sn | cut -d' ' -f2- | head -n "$points"
}

start
fill
attach -f -y
snapshot || fail "a snapshot under strace: $(cat "$T/said.err")"
detach
cp "$T/strace.out" "$T/watched"
list_points "$T/watched" >"$T/points"
n_writer=$(grep -c ^writer "$T/points")
n_loop=$(grep -c ^loop "$T/points")
echo "a snapshot makes $n_writer system calls in the thread that writes and $n_loop in the event loop"
[[ $n_writer -gt 100 && $n_loop -gt 10 ]] || fail "these are too few"

echo "--- killed (seed $seed)"
died=0 kept=0 none=0
while read -r thread name nth _; do
	where="killed at $thread's $name $nth"
	fill
	options=(-e "trace=$name" -e "inject=$name:signal=KILL:when=$nth")
	[[ $thread == loop ]] || options+=(-f)
	attach "${options[@]}"
	snapshot
	if gone 20; then
		died=$((died + 1))
		detach
	else
		# Not every snapshot waits as often as the one that was watched.
		detach
		kill "$ptd_pid"
		gone 500 || fail "$where: it does not end"
	fi
	start
	nothing_partial
	[[ ! -s $T/said || -d $spool/$(cat "$T/said") ]] || fail "$where: it said $(cat "$T/said"), which is not there"
	[[ $n -le 1 ]] || fail "$where: $n snapshots of one"
	if [[ $n == 1 ]]; then kept=$((kept + 1)); else none=$((none + 1)); fi
	rm -rf "${spool:?}"/*
done < <({ tail -n 1 "$T/points"; grep renameat2 "$T/points"; grep fsync "$T/points" | tail -1; cat "$T/points"; } |
	awk '!seen[$0]++' | sample 3)
echo "$died kills, after which $kept times a whole snapshot was there and $none times none"
[[ $kept -gt 0 && $none -gt 0 ]] || fail "not both were seen"
[[ $died -gt 0 && $((died * 10)) -ge $(((kept + none) * 8)) ]] || fail "only $died points were reached"

echo "--- calls that fail"
sed -n 's/^\(writer .*\) disk$/\1/p' "$T/points" >"$T/failing"
fill
failed=0 succeeded=0 elsewhere=0 harmless=
declare -A message=([ENOSPC]="No space left on device" [EIO]="Input/output error" [EMFILE]="Too many open files")
while read -r thread name nth error; do
	where="$error at $thread's $name $nth"
	attach -f -y -e "trace=$name" -e "inject=$name:error=$error:when=$nth"
	snapshot
	status=$?
	detach
	nothing_partial
	# The event loop may have been hit too, in a call that has nothing to do with the disk and
	# cannot fail so, such as the read of a timer; it may end then.
	if ! grep -q INJECTED "$T/strace.out" || grep INJECTED "$T/strace.out" | grep -qv "<$T/state"; then
		elsewhere=$((elsewhere + 1))
		if gone 20; then
			start
			fill
		fi
		rm -rf "${spool:?}"/*
		continue
	fi
	case $status in
	0)
		[[ -d $spool/$(cat "$T/said") && $n == 1 ]] || fail "$where: $(cat "$T/said") is not there"
		harmless+=" $name"
		succeeded=$((succeeded + 1)) ;;
	1)
		grep -q "cannot .* snapshot .*${message[$error]}" "$T/said.err" ||
			fail "$where: an unclear message: $(cat "$T/said.err")"
		[[ $n == 0 ]] || fail "$where: it said that it failed, but a snapshot is there"
		failed=$((failed + 1)) ;;
	*) fail "$where: exit status $status: $(cat "$T/said.err")" ;;
	esac
	rm -rf "${spool:?}"/*
	snapshot || fail "$where: no snapshot afterwards: $(cat "$T/said.err")"
	nothing_partial
	rm -rf "${spool:?}"/*
done < <({ grep -h renameat2 "$T/failing"; tail -1 "$T/failing"; grep write "$T/failing"; cat "$T/failing"; } | awk '!seen[$0]++' |
	while read -r p; do for e in ENOSPC EIO EMFILE; do echo "$p $e"; done; done | sample 6)
echo "$failed snapshots failed with a clear error, $succeeded were whole all the same: $(tr ' ' '\n' <<<"$harmless" | sort | uniq -c | xargs)"
[[ $failed -gt 0 && $((failed + succeeded)) -gt $elsewhere ]] || fail "$elsewhere calls that failed were others"
where="after all that"
record ls /bin/ls /
"$O/tools/exact" "$T/ls" "$T/ls.log" | tail -1
[[ ${PIPESTATUS[0]} -eq 0 ]] || fail "what is recorded after all that is not what ran"
kill "$ptd_pid" && gone 500 || fail "it does not end"
echo ok
