#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A user without groups executes more and more large programs, so that their copies fill the part of a small disk
# that ptd may take; then that user fills the disk itself. The existing snapshots stay.
#
# Alone: the programs of other tests would fill that disk, too.
if [[ ${1:-} != mounted ]]; then
	unshare --mount true 2>/dev/null || { echo "SKIP: no namespace of mounts can be made"; exit 77; }
	exec unshare --mount --propagation private "$0" mounted
fi
. "$(dirname "$0")/lib/attack.sh"

ATTACK_DISK=size=2g
state=$T/state/snapshots
there() { ls "$state" | sort -t- -k2n | tr '\n' ' '; }
whole() { (cd "$state/$1" && sha256sum --quiet --strict -c SHA256SUMS) || fail "snapshot $1 is damaged"; }

cat >"$T/bin/attack-programs" <<'END'
#!/bin/bash
while true; do
	for program in "$1"/program.*; do "$program"; done
	sleep 0.1
done
END
chmod 755 "$T/bin/attack-programs"

echo "--- many large programs"
attack_start pt
taken=$(($(du -sk "$state" | cut -f1) / 1024))
max=$((2 * taken + 256))
echo "a snapshot of the machine takes $taken MiB, so MaxUse=${max}M"
[[ $taken -lt 500 ]] || skip "what runs on this machine now is too large for the disk that is filled"
attack_start pt MaxUse=${max}M KeepFree=64M
first=$(there)
first=${first% }
head -c 32000000 /dev/urandom >"$T/random"
for ((i = 0; i < max / 32 + 4; i++)); do
	{ cat /bin/true "$T/random"; echo "$i"; } >"$T/nobody/program.$i"
done
chmod 755 "$T"/nobody/program.*
attack 6 as_nobody "$T/bin/attack-programs" "$T/nobody"
[[ $(there) == "$first ${snapshot##*/} " ]] ||
	fail "there were $first and ${snapshot##*/}, now there are $(there): $(grep removed "$T/ptd.log")"
whole "$first"
whole "${snapshot##*/}"
! grep "removed snapshot" "$T/ptd.log" || fail "a snapshot was removed"
store=$(find "$T/state/store" -type f -links 1 -printf '%k\n' | awk '{ n += $1 } END { print int(n / 1024) }')
echo "copies that no snapshot has: $store MiB"
[[ $(find "$T/state/store" -type f -size +25M | wc -l) -ge 2 ]] || fail "no copies of the attacker's programs were taken"
[[ $store -le $((max / 2)) ]] || fail "copies that no snapshot has take more than half of MaxUse="

echo "--- a disk that others fill beyond what is to be free"
ATTACK_DISK=size=1g
attack_start pt MaxUse=900M KeepFree=70%
is_taken "$O/ptctl" snapshot >/dev/null 2>"$T/err" || fail "no snapshot: $(cat "$T/err")"
before=$(there)
install -d -m 1777 "$T/state/public"
as_nobody head -c 300000000 /dev/zero >"$T/state/public/filler"
out=$(is_taken as_member "$T/bin/ptctl" snapshot 2>&1) || fail "no snapshot beyond KeepFree=: $out"
"$O/ptctl" reload || fail "the settings cannot be read again"
# No more goes for it than what it has itself, which is more if the machine has just executed much else.
sed -n 's/.*removed snapshot [^ ]*, \([0-9.]*\) MiB.*/\1/p' "$T/ptd.log" >"$T/removed"
newest=$(there | tr ' ' '\n' | grep . | tail -n 1)
own=$(find "$T/state/snapshots/$newest" -type f -links -3 -printf '%k\n' | awk '{ n += $1 } END { print n / 1024 }')
awk -v own="$own" '{ gone += last; last = $1 } END { exit !(gone <= own) }' "$T/removed" ||
	fail "there were $before, there are $(there), and the newest has $own MiB of its own: $(cat "$T/ptd.log")"
[[ $newest != "$(tr ' ' '\n' <<<"$before" | grep . | tail -n 1)" ]] || fail "there is no snapshot beyond KeepFree="
for snapshot in $(there); do whole "$snapshot"; done

echo "--- a full disk"
ATTACK_DISK=size=1g
attack_start pt MaxUse=1T KeepFree=1%
first=$(there)
install -d -m 1777 "$T/state/public"
for ((i = 0; i < 5; i++)); do
	as_nobody head -c 2000000000 /dev/zero >"$T/state/public/filler.$i" 2>/dev/null
	out=$(is_taken "$O/ptctl" snapshot 2>&1) || break
	# What the machine executed just now, and has ended, may have gone for it.
	grep -q "of copies to which no snapshot links, of programs that have ended" "$T/ptd.log" || fail "a snapshot on a full disk: $out"
	first=$(there)
done
[[ $i -lt 5 ]] || fail "snapshots on a full disk: $first"
echo "$out"
[[ $out == *"there is no room for snapshot"* ]] || fail "$out"
[[ $(there) == "$first" ]] || fail "the only snapshot is gone: $(cat "$T/ptd.log")"
for snapshot in $first; do whole "$snapshot"; done
! grep "removed snapshot" "$T/ptd.log" || fail "a snapshot was removed"
[[ -z $(find "$state" -name '.new*') ]] || fail "left: $(find "$state" -name '.new*')"
"$O/ptctl" status >/dev/null || fail "ptd does not answer on a full disk: $(cat "$T/ptd.log")"
rm "$T/state/public"/filler.*
is_taken "$O/ptctl" snapshot >/dev/null 2>"$T/err" || fail "no snapshot once there is room again: $(cat "$T/err")"

echo ok
