#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Users who are in no group record programs, and have what these ran decoded on the server. What each of them
# gets is what was logged of his own programs, and nothing of anybody else's: no instruction, symbol, file,
# name, argument or environment, in no format, whatever he writes into his pool.
. "$(dirname "$0")/attack.sh"
need qemu-x86_64
need jq
need cc

USERS=(60001 60002 60003)
VICTIM=60001 LIAR=60002
FORMATS=(text calls functions summary addresses sideband collapsed stacks latency:function=main html chrome fxt speedscope pprof callgrind)

own() { as_user "$1" "$T/bin/ptctl" snapshot --own "${@:2}"; }

# expect STATUS TEXT CMD...
expect() {
	local want=$1 text=$2 out status
	shift 2
	out=$("$@" 2>&1)
	status=$?
	[[ $status == "$want" ]] && grep -q -- "$text" <<<"$out" || fail "$*: exit status $status: $out"
}

for user in "${USERS[@]}"; do
	canary_program "$user"
	install -d -m 700 -o "$user" -g "$user" "$T/$user/log"
done

# record UID [OPTIONS]: his program and others, with secrets of his.
record() {
	local user=$1
	shift
	PTD_EMU_LOG=$T/$user/log as_user "$user" env "CANARY=CANARY-environment-$user" "$T/bin/ptctl" record "$@" -- \
		sh -c "for i in 1 2 3; do $T/$user/CANARY-me-$user CANARY-argument-$user && ls /usr | sort | tail -n 1; done"
}

# canaries UID FILE...: nothing in the files is of another user than UID.
canaries() {
	local user=$1 other file
	shift
	for other in "${USERS[@]}"; do
		[[ $other != "$user" ]] || continue
		for file; do
			! { cat "$file"; zcat -f "$file" 2>/dev/null; } |
				grep -aqE "$CANARY$other" ||
				fail "$file, which user $user has: of user $other: $(grep -aoE ".{0,40}$CANARY$other" "$file" | head -n 3)"
		done
	done
}

echo "--- each records"
attack_start emu
for user in "${USERS[@]}"; do
	record "$user" -f summary -o "$T/$user/recorded" >"$T/$user/out" 2>"$T/$user/err" &
	recordings+=($!)
done
finish_recordings
for user in "${USERS[@]}"; do
	grep -q "CANARY_symbol_$user" "$T/$user/recorded" || fail "user $user: $(cat "$T/$user/recorded" "$T/$user/err" "$T/ptd.log" "$T/collector.log")"
	grep -q "^Gaps: 0" "$T/$user/recorded" || fail "user $user: $(cat "$T/$user/recorded")"
	[[ $(stat -c %a "$T/$user/recorded") == 600 ]] || fail "others may read it"
	canaries "$user" "$T/$user"/{recorded,out,err}
done

echo "--- each has his own instructions, all of them, and no other"
for user in "${USERS[@]}"; do
	sum=0
	while read -r thread n; do
		own "$user" -f addresses --tid "${thread#*.}" -o "$T/$user/thread" 2>"$T/err" || fail "$(cat "$T/err")"
		"$O/tools/emulog" --compare "$T/$user/log" "$thread" <"$T/$user/thread" || fail "user $user, thread $thread"
		sum=$((sum + $(stat -c %s "$T/$user/thread") / 8))
	done < <("$O/tools/emulog" "$T/$user/log")
	own "$user" -f addresses -o "$T/$user/all" 2>"$T/err" || fail "$(cat "$T/err")"
	[[ $sum -gt 1000000 && $(($(stat -c %s "$T/$user/all") / 8)) == "$sum" ]] ||
		fail "user $user has $(($(stat -c %s "$T/$user/all") / 8)) instructions, $sum are his"
	echo "user $user: $sum instructions"
done

echo "--- in every format"
for format in "${FORMATS[@]}"; do
	for user in "${USERS[@]}"; do
		own "$user" -f "$format" --last 20000 -o "$T/$user/$format" 2>"$T/$user/err" ||
			fail "$format: $(cat "$T/$user/err")"
		canaries "$user" "$T/$user/$format" "$T/$user/err"
	done
done
for format in text calls functions html; do
	grep -aq "CANARY_symbol_$VICTIM" "$T/$VICTIM/$format" || fail "$format: nothing of his own"
done
# A directory comes through the pipe as an archive, which ptctl unpacks.
for user in "${USERS[@]}"; do
	own "$user" -f drmemtrace:compress=none -o "$T/$user/drmemtrace" 2>"$T/$user/err" || fail "drmemtrace: $(cat "$T/$user/err")"
	"$O/ptdecode" --check "$T/$user/drmemtrace" >"$T/$user/checked" 2>&1 || fail "drmemtrace: $(cat "$T/$user/checked")"
	own "$user" -f drmemtrace:compress=none >"$T/$user/tar" 2>"$T/$user/err" || fail "drmemtrace: $(cat "$T/$user/err")"
	diff <(tar tf "$T/$user/tar" | sed 's,/$,,' | sort) <(cd "$T/$user/drmemtrace" && find . | sort) || fail "drmemtrace, as an archive"
	mapfile -t files < <(find "$T/$user/drmemtrace" -type f)
	canaries "$user" "${files[@]}" "$T/$user/err"
	grep -q "CANARY_symbol_$user" "$T/$user/drmemtrace"/aux/* || fail "drmemtrace: nothing of his own"
done
[[ $("$O/ptdecode" -f summary "$T/$VICTIM/drmemtrace" | sed -n 's/^Instructions: //p') == $(($(stat -c %s "$T/$VICTIM/all") / 8)) ]] ||
	fail "drmemtrace: $("$O/ptdecode" -f summary "$T/$VICTIM/drmemtrace" | head -n 20)"
expect 1 "cannot write: Directory not empty" own $VICTIM -f drmemtrace -o "$T/$VICTIM/drmemtrace"
expect 2 "no such option" own $VICTIM -f drmemtrace:nonsense -o "$T/$VICTIM/nothing"
[[ ! -e $T/$VICTIM/nothing ]] || fail "a directory is left"
[[ -z $(ls -A "$T/state/snapshots" | grep -v -- "-1$") ]] || fail "left: $(ls -A "$T/state/snapshots")"

echo "--- he lies: that he ran what another user has, and that another process is his"
victim=$("$O/tools/emulog" "$T/$VICTIM/log" | cut -d. -f1 | tail -n 1)
setpriv --reuid $LIAR --regid $LIAR --clear-groups "$T/bin/attack-pool" forge "$victim" 0x700000 "$T/$VICTIM/CANARY-me-$VICTIM" >"$T/$LIAR/out" 2>&1 &
forger=$!
sleep 2
kill -0 $forger || fail "the forger has ended: $(cat "$T/$LIAR/out")"
# That is what there would be to see: root gets it.
"$O/ptctl" snapshot -o "$T/whole" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
grep -q "CANARY-me-$VICTIM" "$T/whole/objects.map" || fail "the victim's file is not kept: the test shows nothing"
own $LIAR -f text --last 100000 -o "$T/$LIAR/text" 2>"$T/$LIAR/err" || fail "$(cat "$T/$LIAR/err")"
own $LIAR -f summary -o "$T/$LIAR/summary" 2>"$T/$LIAR/err" || fail "$(cat "$T/$LIAR/err")"
own $LIAR -f sideband -o "$T/$LIAR/sideband" 2>"$T/$LIAR/err" || fail "$(cat "$T/$LIAR/err")"
# The name is what he wrote himself.
sed -i "s|$T/$VICTIM/CANARY-me-$VICTIM||g" "$T/$LIAR"/{text,summary,sideband,err}
canaries $LIAR "$T/$LIAR"/{text,summary,sideband,err}
grep -q forged "$T/$LIAR/sideband" || fail "the forgery was not seen: $(tail "$T/ptd.log")"
! grep -aqE "^ *$victim " "$T/$LIAR/summary" || fail "the victim's process is his: $(cat "$T/$LIAR/summary")"
own $VICTIM -f addresses --pid "$victim" -o "$T/$VICTIM/all" 2>"$T/err" || fail "$(cat "$T/err")"
[[ $(($(stat -c %s "$T/$VICTIM/all") / 8)) == $("$O/tools/emulog" "$T/$VICTIM/log" | awk -F'[. ]' -v p="$victim" '$1 == p { n += $3 } END { print n }') ]] ||
	fail "the victim lost instructions"
kill $forger
forger=

echo "--- he says that he runs the other's program"
offset=0x$(nm "$T/$VICTIM/CANARY-me-$VICTIM" | sed -n "s/ t CANARY_symbol_$VICTIM//p")
setpriv --reuid $LIAR --regid $LIAR --clear-groups "$T/bin/attack-pool" claim "$T/$VICTIM/CANARY-me-$VICTIM" "$offset" >"$T/$LIAR/out" 2>&1 &
forger=$!
sleep 2
kill -0 $forger || fail "the claimer has ended: $(cat "$T/$LIAR/out")"
"$O/ptctl" snapshot -o "$T/claimed" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
"$O/ptdecode" --pid $forger --last 1000 -f text "$T/claimed" >"$T/text" 2>"$T/err"
grep -q "CANARY_symbol_$VICTIM" "$T/text" || fail "the attack has no effect: $(cat "$T/err"; head "$T/text")"
for format in text summary calls; do
	own $LIAR -f $format --pid $forger --last 1000 -o "$T/$LIAR/$format" 2>"$T/$LIAR/err" || fail "$(cat "$T/$LIAR/err")"
	sed -i "s|$T/$VICTIM/CANARY-me-$VICTIM||g" "$T/$LIAR"/{$format,err}
	canaries $LIAR "$T/$LIAR"/{$format,err}
done
# Whether the file is there is said in the same words as of one that is not.
for path in "$T/$VICTIM/CANARY-me-$VICTIM" "$T/$VICTIM/CANARY-me-none"; do
	kill $forger
	setpriv --reuid $LIAR --regid $LIAR --clear-groups "$T/bin/attack-pool" claim "$path" "$offset" >"$T/$LIAR/out" 2>&1 &
	forger=$!
	sleep 1
	# How much there is grows with the time, and what he claimed before is still there.
	own $LIAR -f summary --pid $forger 2>&1 | sed "s|$path|PATH|g; s/[0-9][0-9]*/N/g" | grep -v "^ \|^ptctl: " >"$T/$LIAR/said.${path##*-}"
done
diff "$T/$LIAR"/said.{$VICTIM,none} || fail "he learns whether a file is there"
kill $forger
forger=

echo "--- who has other rights is not recorded as his, and who root starts is root's"
install -m 4755 "$(command -v id)" "$T/bin/setuid-id"
as_user $VICTIM "$T/bin/ptctl" record -f summary -o "$T/$VICTIM/setuid" -- \
	sh -c "$T/bin/setuid-id -u; true" >"$T/$VICTIM/out" 2>"$T/$VICTIM/err" || fail "$(cat "$T/$VICTIM/err")"
[[ $(cat "$T/$VICTIM/out") == 0 ]] || fail "it has lost its privileges: $(cat "$T/$VICTIM/out")"
! grep -q setuid-id "$T/$VICTIM/setuid" || fail "$(cat "$T/$VICTIM/setuid")"
"$O/ptctl" record -o "$T/dropped" -- setpriv --reuid $VICTIM --regid $VICTIM --clear-groups \
	"$(command -v nl)" /etc/hostname >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
own $VICTIM -f summary -o "$T/$VICTIM/summary" 2>"$T/err" || fail "$(cat "$T/err")"
! grep -qE "setpriv|/nl\b" "$T/$VICTIM/summary" || fail "what root started: $(cat "$T/$VICTIM/summary")"

echo "--- what he may not call, and what is not his"
expect 4 "may call TakeSnapshot: others can have" as_user $VICTIM "$T/bin/ptctl" snapshot
for verb in list pause resume reload "rm latest" "info latest" "keep latest" "trigger oom"; do
	expect 4 "only root, the recorder's user and members of the group ptd may call" \
		as_user $VICTIM "$T/bin/ptctl" $verb
done
expect 125 "With -f FORMAT" as_user $VICTIM "$T/bin/ptctl" record -- true
expect 1 "no program of user 60009 was recorded" own 60009 -f summary
expect 2 "no such format" own $VICTIM -f nonsense
expect 0 "^Visible: what concerns you" as_user $VICTIM sh -c "'$T/bin/ptctl' status | sed 's/^ *//'"
if command -v gdbus >/dev/null; then
	call() {
		as_user "$1" gdbus call --address "unix:path=$PTD_SOCKET" --dest org.ptd --timeout 20 \
			--object-path /org/ptd/Recorder1 --method "org.ptd.Recorder1.$2" "${@:3}"
	}
	id=$(call $VICTIM TakeOwn summary '{}' | grep -o "[0-9T.]*Z-[0-9]*") || fail "TakeOwn"
	expect 1 NoSuchSnapshot call $LIAR WaitOwn "$id"
	expect 1 AccessDenied call $VICTIM OpenSnapshot "$id"
	expect 1 AccessDenied call $VICTIM WaitSnapshot "$id"
	"$O/ptctl" list --json >"$T/out"
	! grep -q "$id" "$T/out" || fail "it is in the list"
fi

echo "--- they ask all the time: root's snapshots do not wait"
alone=0 beside=0
time_snapshots() {
	local start=${EPOCHREALTIME/[.,]/} i
	for i in 1 2 3; do
		"$O/ptctl" snapshot >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
	done
	echo $(((${EPOCHREALTIME/[.,]/} - start) / 3000))
}
alone=$(time_snapshots)
for user in "${USERS[@]}"; do
	as_user "$user" sh -c 'while [ ! -e "$1/enough" ]; do "$1/bin/ptctl" snapshot --own -f summary; done' sh "$T" \
		>"$T/$user/out" 2>&1 &
	recordings+=($!)
done
sleep 1
beside=$(time_snapshots)
: >"$T/enough"
finish_recordings
echo "$alone ms alone, $beside ms beside them"
for user in "${USERS[@]}"; do
	canaries "$user" "$T/$user/out"
	grep -q "^Instructions: " "$T/$user/out" || fail "user $user had nothing: $(tail -n 5 "$T/$user/out")"
done
stop_ptd
! ls -A "$T/state/snapshots" | grep -q "^\.new" || fail "left: $(ls -A "$T/state/snapshots")"
echo ok
