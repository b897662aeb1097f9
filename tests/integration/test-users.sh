#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Users that are recorded by the software source at the same time, each in a pool of his own. What each of them
# ran is decoded to what was logged. A user who writes forged records about another user's process into his own
# pool changes nothing of what that process ran.
. "$(dirname "$0")/attack.sh"
need qemu-x86_64

USERS=(60001 60002 60003)

for user in "${USERS[@]}"; do
	install -d -m 700 -o "$user" -g "$user" "$T/$user"
done

# begin UID CMD...: record it in the background.
begin() {
	install -d -o "$1" -g "$1" "$T/$1/log"
	PTD_EMU_LOG=$T/$1/log as_user "$1:$PTD_ID" "$T/bin/ptctl" record -- "${@:2}" >"$T/$1/out" 2>"$T/$1/err" &
	recordings+=($!)
}

# check SNAPSHOT LOG: what ran of the log's threads is what was logged.
check() {
	local engine
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$1" "$2" >"$T/exact" || { tail -n 20 "$T/exact"; fail "$1, $2, $engine"; }
	done
	tail -n 1 "$T/exact"
}

refused() { # WHAT UID
	"$O/ptctl" --json status | jq -r ".refused[] | select(.what == \"$1\" and .uid == $2) | .times"
}

need jq

echo "--- three users at once"
attack_start emu
for user in "${USERS[@]}"; do
	begin "$user" sh -c "for i in 1 2 3 4 5 6; do ls /usr | sort | tail -n 1; done"
done
finish_recordings
"$O/ptctl" snapshot -o "$T/all" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
mkdir "$T/all.log"
for user in "${USERS[@]}"; do
	cp "$T/$user/log"/* "$T/all.log/"
done
check "$T/all" "$T/all.log"
# Each has CPUs of his own: those of a pool are eight.
[[ $(sed -n 's/^cpu\.\([0-9]*\)\.bytes=[1-9].*/\1/p' "$T/all/manifest" | awk '{ print int($1 / 8) }' | sort -u | wc -l) == 3 ]] ||
	fail "CPUs of three pools: $(grep '^cpu\.' "$T/all/manifest")"
for user in "${USERS[@]}"; do
	[[ -z $(refused records "$user") ]] || fail "records of user $user were refused: $(grep "$user" "$T/ptd.log")"
done

echo "--- one of them lies about another one's process"
rm -rf "$T"/6000?/log
attack_start emu
begin 60001 sh -c "until [ -e $T/enough ]; do ls /usr | sort | tail -n 1; done"
for _ in {1..100}; do
	pid=$(pgrep -u 60001 -f qemu-x86_64 | head -n 1)
	[[ -z $pid ]] || break
	sleep 0.05
done
[[ -n $pid ]] || fail "no recorded process: $(cat "$T/60001/err")"
exec_as_user "60002:$PTD_ID" "$T/bin/attack-pool" forge "$pid" 0x400000 /bin/true >"$T/60002/out" 2>&1 &
forger=$!
sleep 2
kill -0 $forger || fail "the forger has ended: $(cat "$T/60002/out")"
: >"$T/enough"
finish_recordings
kill $forger
forger=
"$O/ptctl" snapshot -o "$T/forged" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
check "$T/forged" "$T/60001/log"
[[ $(refused records 60002) -gt 0 ]] || fail "no lie was noticed: $("$O/ptctl" --json status)"
[[ -z $(refused records 60001) ]] || fail "records of the victim were refused"
grep -q "in the pool of user 60002 name processes that are not his" "$T/ptd.log" || fail "$(cat "$T/ptd.log")"

echo "--- and writes nonsense, which concerns his own programs only"
rm -rf "$T"/6000?/log "$T/enough"
attack_start emu
begin 60001 sh -c "until [ -e $T/enough ]; do ls /usr | sort | tail -n 1; done"
sleep 0.5
exec_as_user "60002:$PTD_ID" "$T/bin/attack-pool" litter >"$T/60002/out" 2>&1 &
forger=$!
sleep 2
: >"$T/enough"
finish_recordings
kill $forger
forger=
"$O/ptctl" snapshot -o "$T/scribbled" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
check "$T/scribbled" "$T/60001/log"
echo ok
