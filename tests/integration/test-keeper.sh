#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The keeper: ptd is killed and restarted while programs are recorded, and so is the keeper. A snapshot that is
# taken afterwards reaches back beyond all of it, and is decoded to what ran, instruction by instruction. And the
# collector, which may hang or be killed as well.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

keeper_pid() {
	pgrep -f -x "ptd-keeper $T/run/keeper/socket"
}

# until_ WHAT CMD...: wait until CMD succeeds.
until_() {
	await "${@:2}" && return
	cat "$T/ptd.log" >&2
	fail "waited in vain: $1"
}

end_ptd() {
	kill "-$1" "$ptd_pid"
	{ wait "$ptd_pid"; } 2>/dev/null
	ptd_pid=
}

n_said() {
	[[ $(grep -c "took over the rings of the ptd that ran before" "$T/ptd.log") == "$1" ]]
}

# begin NAME CMD...: record it in the background.
begin() {
	mkdir "$T/$1.log"
	PTD_EMU_LOG=$T/$1.log "$O/ptctl" record -- "${@:2}" >"$T/$1.out" 2>"$T/$1.err" & recording=$!
}

# at_work NAME: the program is being recorded, and goes on.
at_work() {
	kill -0 "$recording" 2>/dev/null || fail "$1 has ended too early: $(cat "$T/$1.err")"
}

# check NAME: what the rings hold is what was logged.
check() {
	"$O/ptctl" snapshot -o "$T/$1" >/dev/null 2>"$T/$1.err" || fail "snapshot: $(cat "$T/$1.err")"
	for engine in flow insn; do
		"$O/tools/exact" -e "$engine" "$T/$1" "$T/$1.log" >"$T/exact" || { cat "$T/exact"; fail "$1, $engine"; }
	done
	echo "$1: $(tail -1 "$T/exact")"
}

manifest() { # SNAPSHOT KEY
	sed -n "s/^$2=//p" "$T/$1/manifest"
}

echo "--- ptd is killed, and the keeper, while programs begin and end"
start_ptd KeepRings=60
[[ -S $T/run/keeper/socket && $(keeper_pid) ]] || fail "there is no keeper"
[[ $(stat -c %a "$T/run/keeper") == 700 ]] || fail "others may connect to the keeper"
begin tree sh -c "i=0; until [ -e '$T/enough' ]; do ls /usr | sort | tail -1; i=\$((i + 1)); done; echo \$i"
for moment in 0.7 1.3 0.4 0.9 0.2; do
	sleep "$moment"
	at_work tree
	end_ptd KILL
	sleep 0.$((RANDOM % 5))
	launch_ptd
done
until_ "it took the rings over" n_said 5
sleep 0.5
at_work tree
kill -KILL "$(keeper_pid)"
until_ "there is another keeper" keeper_pid
sleep 1.5
at_work tree
end_ptd KILL
launch_ptd
until_ "it took the rings over from the other keeper" n_said 6
end_ptd TERM
launch_ptd
until_ "it took the rings over from one that was stopped" n_said 7
at_work tree
touch "$T/enough"
wait "$recording"
[[ $(tail -1 "$T/tree.out") -ge 3 ]] || fail "little ran: $(cat "$T/tree.out" "$T/tree.err")"
grep -q "ptctl: snapshot .* of PT in " "$T/tree.err" || fail "record has no snapshot: $(cat "$T/tree.err")"
check tree

echo "--- the code that was in no file is lost with the ptd that had it, and the snapshot says so"
mkdir "$T/jitted"
"$O/ptctl" record -o "$T/before" -- "$O/targets/jit.c" "$T/jitted" >/dev/null 2>"$T/err" || fail "record: $(cat "$T/err")"
end_ptd KILL
launch_ptd
n_said 8 || fail "it did not take the rings over from one that had code"
"$O/ptctl" snapshot -o "$T/after" >/dev/null 2>"$T/err" || fail "snapshot: $(cat "$T/err")"
[[ $(manifest after code_lost_bytes) -gt $(manifest before code_lost_bytes) ]] || fail "it does not say what was lost"
[[ $(manifest after taken_over_ns) -gt $(manifest before taken_over_ns) ]] || fail "it does not say since when"

echo "--- what was changed is made anew, and who was being recorded is told"
begin anew sh -c "until [ -e '$T/over' ]; do sleep 0.1; done"
sleep 0.5
sed -i 's/^AuxSize=.*/AuxSize=64M/' "$T/ptd.conf"
end_ptd TERM
launch_ptd
n_said 8 || fail "it took over rings of another size"
at_work anew
touch "$T/over"
wait "$recording" && status=0 || status=$?
[[ $status == 125 ]] || fail "record: exit status $status, though the recording is lost"
grep -q "made its rings anew: the recording is lost" "$T/anew.err" || fail "record: $(cat "$T/anew.err")"
"$O/ptctl" snapshot -o "$T/none" >/dev/null 2>&1 || fail "snapshot"
"$O/ptdecode" summary "$T/none" | grep -q "^Instructions: *0$" || fail "the new rings hold something"

echo "--- rings that nobody takes over are freed"
sed -i 's/^KeepRings=60/KeepRings=1/' "$T/ptd.conf"
"$O/ptctl" reload || fail "reload"
keeper=$(keeper_pid)
end_ptd KILL
until_ "the keeper has ended" eval '! kill -0 '"$keeper"
[[ ! -e $T/run/keeper/socket ]] || fail "it left its socket"
launch_ptd
n_said 8 || fail "it took over what was freed"
sed -i 's/^KeepRings=1/KeepRings=0/' "$T/ptd.conf"
"$O/ptctl" reload || fail "reload"
until_ "there is no keeper" eval '! keeper_pid'
stop_ptd
echo "--- a collector that hangs or is killed costs what it did not keep, and nothing else"
collector() { pgrep -f -x -o "ptd-collector $T/run/collector/socket"; }
start_ptd AuxSize=1M
cp /bin/true "$T/early"
cp /bin/true "$T/late"
kill -STOP "$(collector)" || fail "there is no collector"
"$O/ptctl" record -o "$T/stopped" -- "$T/early" >"$T/recorded" 2>&1 || fail "record: $(cat "$T/recorded")"
timeout $HUNG_S "$O/ptctl" status >/dev/null || fail "no status"
grep -q "^- it was not read in time	$T/early$" "$T/stopped/objects.map" || fail "$(cat "$T/stopped/objects.map")"
grep -q "/run/collector/socket: the collector is not there" "$T/ptd.log" || fail "nothing was logged"
kill -CONT "$(collector)"
kill -KILL "$(collector)"
for _ in {1..60}; do
	"$O/ptctl" record -o "$T/again" -- "$T/late" >"$T/recorded" 2>&1 || fail "record: $(cat "$T/recorded")"
	! grep -q "^[0-9a-f]\{40\}	$T/late$" "$T/again/objects.map" || break
	rm -r "$T/again"
done
[[ -e $T/again ]] || fail "it is not kept by another collector: $(tail "$T/ptd.log")"

echo ok
