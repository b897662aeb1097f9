#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Members of group ptd that are recorded by the software source at the same time, in one pool. What each of them
# ran is decoded to what was logged. After a program has written nonsense into the pool, others are recorded as before.
. "$(dirname "$0")/lib/attack.sh"
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

echo "--- one of them writes nonsense into the pool"
rm -rf "$T"/6000?/log
attack_start emu
exec_as_user "60002:$PTD_ID" "$T/bin/attack-pool" litter >"$T/60002/out" 2>&1 &
forger=$!
sleep 2
kill -0 $forger || fail "the program has ended: $(cat "$T/60002/out")"
"$O/ptctl" status >/dev/null || fail "ptd has gone"
kill $forger
wait $forger || :
forger=
begin 60001 sh -c "for i in 1 2 3; do ls /usr | sort | tail -n 1; done"
finish_recordings
"$O/ptctl" snapshot -o "$T/after" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
check "$T/after" "$T/60001/log"
"$O/ptctl" --json status | grep -q '"sideband_lost":[1-9]' || fail "no nonsense was noticed"
echo ok
