#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A snapshot is taken at the instruction at which a condition of `ptctl record --when` holds, in whatever thread
# that is: what ptdecode shows of the thread is the beginning of what it executed in all, and what it executed next
# is what the condition waited for. Where no condition holds, there is no snapshot.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 /usr/bin/python3 setpriv
program=$O/targets/when.c

# when NAME STATUS ARGUMENT...: record with the arguments, the snapshot to $T/NAME; then everything to $T/NAME.all.
when() {
	local name=$1 status=$2 got
	shift 2
	start_ptd AuxSize=16M
	mkdir "$T/$name.log"
	PTD_EMU_LOG=$T/$name.log "$O/ptctl" record -o "$T/$name" "$@" >"$T/$name.out" 2>"$T/$name.err"
	got=$?
	[[ $got == "$status" ]] || { cat "$T/$name.err" "$T/ptd.log" >&2; fail "$name: exit status $got, not $status"; }
	"$O/ptctl" snapshot -o "$T/$name.all" >"$T/snapshot" 2>&1 || { cat "$T/snapshot"; fail "$name: all"; }
	"$O/tools/exact" "$T/$name.all" "$T/$name.log" >"$T/exact" || { tail -5 "$T/exact"; fail "$name: not as logged"; }
}

# key NAME KEY: of the manifest of $T/NAME.
key() {
	sed -n "s/^$2=//p" "$T/$1/manifest"
}

# steps SNAPSHOT TID: the thread's instructions: address and place.
steps() {
	"$O/ptdecode" text --tid "$2" "$1" | awk '!/^#/ { print $5, $(NF - 1) }'
}

# held NAME CONDITION PLACE: it held in the thread that said so, and PLACE is what the thread executed next.
held() {
	local tid next
	[[ -s $T/$1/manifest ]] || { cat "$T/$1.err"; fail "$1: no snapshot"; }
	[[ $(key "$1" trigger) == "$2" ]] || fail "$1: the manifest has \"$(key "$1" trigger)\""
	tid=$(key "$1" trigger_tid)
	[[ $tid == "$(cat "$T/$1.out")" ]] || fail "$1: in thread $tid, not $(cat "$T/$1.out")"
	steps "$T/$1" "$tid" >"$T/steps"
	steps "$T/$1.all" "$tid" >"$T/steps.all"
	[[ $(wc -l <"$T/steps") -gt 8000 ]] || fail "$1: $(wc -l <"$T/steps") instructions"
	head -n "$(wc -l <"$T/steps")" "$T/steps.all" | cmp - "$T/steps" || fail "$1: not the beginning of what ran"
	next=$(tail -n +$(($(wc -l <"$T/steps") + 1)) "$T/steps.all" | head -1 | cut -d' ' -f2)
	[[ $next == "$3" ]] || fail "$1: \"$next\" came next, not \"$3\""
	"$O/ptctl" list | grep -q . || fail "$1: not listed"
	echo "$1: $2, $(wc -l <"$T/steps") of $(wc -l <"$T/steps.all") instructions of the thread, next: ${next:-none}"
}

when enter 0 --when enter:wanted -- "$program" enter
held enter enter:wanted wanted+0x0
when object 0 --when signal:USR2 --when enter:wanted@when.c -- "$program" enter
held object enter:wanted@when.c wanted+0x0
when path 0 --when "enter:wanted@$(realpath "$program")" -- "$program" enter
held path "enter:wanted@$(realpath "$program")" wanted+0x0
when usr1 0 --when signal:10 -- "$program" usr1
held usr1 signal:10 on_signal+0x0
when segv 139 --when signal:SIGSEGV -- "$program" segv
held segv signal:SIGSEGV ''
when failure 0 --when exit:failure -- "$program" exit
held failure exit:3 ''
when status 0 --when exit:3 -- "$program" exit
held status exit:3 ''

echo "--- conditions that do not hold"
for condition in enter:absent enter:wanted@libc.so.6 enter:want signal:USR2 exit:4 exit:failure; do
	"$O/ptctl" record -o "$T/none" --when $condition -- "$program" usr1 >"$T/out" 2>"$T/err" || fail "$condition: $(cat "$T/err")"
	grep -q 'no condition of --when held: there is no snapshot' "$T/err" || fail "$condition: $(cat "$T/err")"
	[[ ! -e $T/none ]] || fail "$condition: a snapshot"
done
rm -rf "$T"/enter* "$T"/object* "$T"/path* "$T"/usr1* "$T"/segv* "$T"/failure* "$T"/status*

echo "--- more than one snapshot, and no more than are wanted"
before=$("$O/ptctl" list | wc -l)
"$O/ptctl" record --when enter:wanted --count 3 -- "$program" often >"$T/out" 2>"$T/err" || fail "$(cat "$T/err")"
[[ $(grep -c 'enter:wanted: thread' "$T/err") == 3 ]] || { cat "$T/err"; fail "not three"; }
[[ $("$O/ptctl" list | wc -l) == $((before + 3)) ]] || fail "the list does not have three more"
for id in $("$O/ptctl" list | awk 'NR > 1 { print $1 }' | tail -3); do
	"$O/ptdecode" text --tid "$(cat "$T/out")" "$T/state/snapshots/$id" | grep -c ' wanted+0x0 '
done >"$T/counts"
[[ $(tr '\n' ' ' <"$T/counts") == "0 1 2 " ]] || { cat "$T/counts"; fail "not at the first three entries"; }

echo "--- strangers at the socket"
mkfifo "$T/line"
"$O/ptctl" record -o "$T/strange" --when enter:wanted -- "$program" wait <"$T/line" >"$T/out" 2>"$T/err" &
ptctl=$!
exec 7>"$T/line"
for _ in {1..100}; do
	name=$(tr '\0' '\n' 2>/dev/null <"/proc/$(pgrep -P $ptctl | head -1)/cmdline" | sed -n 's/.*,trigger=//p')
	[[ -z $name ]] || break
	sleep 0.05
done
[[ -n $name ]] || fail "the socket has no name"
knock='
import socket, sys
for packet in [b"", b"x", b"y" * 40, b"\xff" * 40, b"z" * 5000, None]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("\0" + sys.argv[1])
    if packet is not None:
        s.send(packet)
    s.close()
'
/usr/bin/python3 -c "$knock" "$name" || fail "knocking"
# A packet that is right, but of another user.
right='
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect("\0" + sys.argv[1])
try:
    s.send(struct.pack("<IIIIQQ", 0, 1, 1, 0, 0, 0))
    answer = s.recv(1)
except OSError:
    answer = b""
assert answer == b"", "believed"
'
if [[ $(id -u) == 0 ]]; then
	setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 -c "$right" "$name" || fail "another user is believed"
fi
echo >&7
exec 7>&-
wait $ptctl || { cat "$T/err"; fail "strangers disturb"; }
[[ $(key strange trigger_tid) == "$(cat "$T/out")" ]] || fail "not the thread: $(cat "$T/err")"

echo "--- usage"
refused() {
	"$O/ptctl" record "${@:2}" -- /bin/true >"$T/out" 2>"$T/err"
	[[ $? == 125 ]] && grep -qF -- "$1" "$T/err" || fail "record ${*:2}: $(cat "$T/err")"
}
for bad in '' enter enter: enter:@libc enter:f@ 'enter:a+b' signal: signal:SEG signal:0 signal:65 \
	exit: exit:256 exit:-1 exit:x leave:main; do
	refused "\"$bad\" is no condition" --when "$bad"
done
for other in return:f longer:1s:f core oom; do
	refused "\"$other\" is a condition for ptctl trigger only" --when $other
done
refused '--count is for --when' --count 2
refused 'is no number of snapshots' --when exit:0 --count 0
refused '-o is for one snapshot' --when exit:0 --count 2 -o "$T/two"
