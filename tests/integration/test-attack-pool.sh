#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A member of the software source's pool writes what it likes into it. By forged records it must not
# get another user's memory or files into a snapshot. By a header that changes all the time it must not
# have other members' programs crash.
#
# Alone: the attack takes the CPUs of other tests.
. "$(dirname "$0")/lib/attack.sh"
need qemu-x86_64

victim=
trap '[[ -z $victim ]] || kill $victim; attack_leave' EXIT
attack_start emu

# What only its owner may read: ELF files, as core dumps are.
for name in "$T/private/core" "$T/core-of-root" "$T/public"; do
	cp /bin/true "$name"
	printf 'SECRET-%s' "${name##*/}" >>"$name"
done
chown $OTHER:$OTHER "$T/private/core"
chmod 600 "$T/private/core" "$T/core-of-root"
chmod 755 "$T/public"
# And memory, of another member.
setpriv --reuid $OTHER --regid $OTHER --groups $PTD_ID "$T/bin/attack-pool" victim SECRET-memory >"$T/victim" 2>&1 &
victim=$!
for _ in {1..100}; do [[ -s $T/victim ]] && break; sleep 0.05; done
read -r pid address <"$T/victim"
[[ $address == 0x* ]] || fail "no victim: $(cat "$T/victim")"

attack 4 as_member "$T/bin/attack-pool" forge "$pid" "$address" "$T/public" "$T/private/core" "$T/core-of-root"
kill $victim
victim=
grep -q "	$T/public$" "$snapshot/objects.map" || fail "the forged records are not in the snapshot: $(cat "$snapshot/objects.map")"
! grep -q "^-.*	$T/public$" "$snapshot/objects.map" || fail "what everybody may read is not kept"
for name in "$T/private/core" "$T/core-of-root"; do
	grep -q "^-.*	$name$" "$snapshot/objects.map" || fail "$name is not missing: $(cat "$snapshot/objects.map")"
done
grep -raoh "SECRET-[a-z-]*" "$snapshot" | sort | uniq -c >"$T/found"
cat "$T/found"
grep -q SECRET-public "$T/found" || fail "the public file is not in the snapshot: this test sees nothing"
! grep -v SECRET-public "$T/found" || fail "what another user only may read is in the snapshot"

# A program under attack is recorded, or it is said that the pool makes no sense.
victims() {
	local n=0 status
	"$T/bin/attack-pool" scribble &
	scribbler=$!
	while kill -0 $scribbler 2>/dev/null; do
		"$T/bin/ptctl" record -- /bin/true >"$T/nobody/out" 2>&1
		status=$?
		((++n))
		echo "$status" >>"$T/nobody/n"
		grep -q "killed by signal" "$T/nobody/out" || [[ $status -gt 128 ]] || continue
		cat "$T/nobody/out"
		echo "exit status $status"
		return 1
	done
	wait $scribbler
	return 1
}
export -f victims
export T
attack_start emu
attack 8 as_member bash -c victims
sort "$T/nobody/n" | uniq -c | sed 's/$/: exit status of a program that was recorded meanwhile/'
cat "$T/nobody/out"
# Some found a header that makes sense.
[[ $(grep -cx 0 "$T/nobody/n") -ge 2 ]] || fail "hardly any program was recorded"
