#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A user without privileges makes the recorder look at files that are meant to harm it, or its snapshots: with
# notes without end, without an end themselves, with the build-id of another user's program.
#
# Alone: the attack takes the CPUs of other tests.
. "$(dirname "$0")/lib/attack.sh"

echo "--- 65,533 notes of 64 KiB in a file of 4 MiB"
attack_start pt
attack 5 as_nobody "$T/bin/attack-notes" "$T/nobody"

echo "--- files that grow while they are copied"
attack_start pt
attack 5 as_nobody "$T/bin/attack-growing" "$T/nobody"

echo "--- many files of 500 MiB"
attack_start pt
attack 5 as_nobody "$T/bin/attack-large" "$T/nobody"
# A slow machine gives up the first of them.
grep -qE "^- (more than 768 MiB of its owner's files wait to be copied|it was not read in time)	$T/nobody/large" "$snapshot/objects.map" ||
	fail "a snapshot had all of them: $(cat "$snapshot/objects.map")"

# In a mount namespace of their own, users can have any file at any path. What root executes there is found as before.
echo "--- another file at a path of root, in a user and mount namespace"
if as_nobody unshare --user --map-root-user --mount true 2>/dev/null; then
	attack_start pt
	cp /bin/sleep "$T/bin/namesake"
	{ cat /bin/sleep; echo forged; } >"$T/nobody/namesake"
	chmod 755 "$T/nobody/namesake"
	"$T/bin/namesake" 0.1
	sha() { sha256sum <"$1" | cut -c -64; }
	printf '%s\n' "sha256:$(sha "$T/bin/namesake")" "@$(stat -c %Hd:%Ld:%i "$T/nobody/namesake") sha256:$(sha "$T/nobody/namesake")" >"$T/wanted"
	told_apart() {
		set -m
		as_nobody unshare --user --map-root-user --mount sh -c 'mount --bind "$1" "$2" && exec "$2" 300' - \
			"$T/nobody/namesake" "$T/bin/namesake" &
		attacker=$!
		set +m
		until pgrep -g $attacker -x namesake >/dev/null; do sleep 0.1; done
		sleep 1
		"$O/ptctl" snapshot >"$T/out" 2>&1 || fail "no snapshot: $(cat "$T/out")"
		snapshot=$T/state/snapshots/$(grep -m 1 '^[0-9T.]*Z-[0-9]*$' "$T/out")
		attack_over
		grep "	$T/bin/namesake$" "$snapshot/objects.map" | cut -f 1 | diff "$T/wanted" -
	}
	# On a busy machine looking for a user's files may take longer than ptd looks for them at a time.
	for i in {1..10}; do
		! told_apart || break
	done
	[[ $i -lt 10 ]] || fail "the inode does not tell the namesakes apart"
else
	echo "not judged: no user namespaces"
fi

# The one is too large to be kept, the other claims to be it. The one's code is unknown then, for its file is
# gone when it is decoded; and the other's is not shown in its place.
echo "--- a file with the build-id of one that is not kept"
need qemu-x86_64 "${CC:-cc}"
id=0123456789abcdef0123456789abcdef01234567
twin() { "${CC:-cc}" -O2 -Wl,--build-id=0x$id "$@" tests/targets/twin.c || fail "cc"; }
twin -o "$T/private/twin"
truncate -s 513M "$T/private/twin"
twin -DOTHER -o "$T/nobody/twin"
chmod 755 "$T/private" "$T/private/twin" "$T/nobody/twin"
attack_start emu AuxSize=64M
# Whoever a process becomes, it logs on where it began.
mkdir -m 777 "$T/twins.log"
PTD_EMU_LOG=$T/twins.log "$O/ptctl" record -o "$T/twins" -- /bin/bash -c "
	umask 0
	setpriv --reuid $NOBODY --regid $NOBODY --clear-groups $T/nobody/twin
	setpriv --reuid $OTHER --regid $OTHER --clear-groups $T/private/twin" >"$T/out" 2>&1 ||
	fail "cannot record them: $(cat "$T/out")"
stop_ptd
grep -q "^- it is larger than 512 MiB.*	$T/private/twin$" "$T/twins/objects.map" &&
	grep -q "^sha256:.*	$T/nobody/twin$" "$T/twins/objects.map" ||
	fail "they are not what this is about: $(cat "$T/twins/objects.map")"
[[ $(awk '$NF == "'"$T"'/private/twin" { print $1 }' "$T/twins/objects.map") == - ]] || fail "it was kept"
rm "$T/private/twin"
for engine in flow insn; do
	"$O/tools/gapped" $engine "$T/twins" "$T/twins.log" >"$T/gapped" || { cat "$T/gapped"; fail "$engine"; }
	echo "$engine: $(tail -1 "$T/gapped")"
	"$O/ptdecode" -e $engine text "$T/twins" >"$T/text"
	grep -q "$T/nobody/twin" "$T/text" || fail "$engine: the file that was kept is not decoded"
	! grep -q "$T/private/twin" "$T/text" || fail "$engine: code that is not known is shown"
done
echo ok
