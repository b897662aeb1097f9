#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A user without groups executes ever other large programs, so that their copies fill what ptd may take of a
# small disk; then he fills the disk itself. Then root, and one who may take snapshots and asks for them without
# end, take them while ever other large programs of another user run. The snapshots that there are stay.
#
# Alone: how soon ptd answers is measured.
if [[ ${1:-} != mounted ]]; then
	unshare --mount true 2>/dev/null || { echo "SKIP: no namespace of mounts can be made"; exit 77; }
	exec unshare --mount --propagation private "$0" mounted
fi
. "$(dirname "$0")/attack.sh"

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
"$O/ptctl" snapshot >/dev/null 2>"$T/err" || fail "no snapshot: $(cat "$T/err")"
before=$(there)
install -d -m 1777 "$T/state/public"
as_nobody head -c 300000000 /dev/zero >"$T/state/public/filler"
out=$(as_member "$T/bin/ptctl" snapshot 2>&1) || fail "no snapshot beyond KeepFree=: $out"
"$O/ptctl" reload || fail "the settings cannot be read again"
[[ $(there) == "$before"* && $(there | wc -w) == $(($(wc -w <<<"$before") + 1)) ]] || fail "there were $before, there are $(there): $(cat "$T/ptd.log")"
for snapshot in $before; do whole "$snapshot"; done

echo "--- a full disk"
ATTACK_DISK=size=1g
attack_start pt MaxUse=1T KeepFree=1%
first=$(there)
install -d -m 1777 "$T/state/public"
for ((i = 0; i < 5; i++)); do
	as_nobody head -c 2000000000 /dev/zero >"$T/state/public/filler.$i" 2>/dev/null
	start=${EPOCHREALTIME/[.,]/}
	out=$("$O/ptctl" snapshot 2>&1) || break
	# What the machine executed just now, and has ended, may have gone for it.
	grep -q "of copies to which no snapshot links, of programs that have ended" "$T/ptd.log" || fail "a snapshot on a full disk: $out"
	first=$(there)
done
[[ $i -lt 5 ]] || fail "snapshots on a full disk: $first"
end=${EPOCHREALTIME/[.,]/}
echo "after $(((end - start) / 1000)) ms: $out"
[[ $out == *"there is no room for snapshot"* ]] || fail "$out"
[[ $(there) == "$first" ]] || fail "the only snapshot is gone: $(cat "$T/ptd.log")"
for snapshot in $first; do whole "$snapshot"; done
! grep "removed snapshot" "$T/ptd.log" || fail "a snapshot was removed"
[[ -z $(find "$state" -name '.new*') ]] || fail "left: $(find "$state" -name '.new*')"
"$O/ptctl" status >/dev/null || fail "ptd does not answer on a full disk: $(cat "$T/ptd.log")"
rm "$T/state/public"/filler.*
"$O/ptctl" snapshot >/dev/null 2>&1 || fail "no snapshot once there is room again"

echo "--- snapshots of root, and those of one who asks without end, beside large programs that go on running"
ATTACK_DISK=size=1g
RUNNER=65531
need qemu-x86_64
attack_start emu MaxUse=64M
"$O/ptctl" rm latest || fail "cannot remove the snapshot that is there"
mkdir "$T/honest.log"
PTD_EMU_LOG=$T/honest.log "$O/ptctl" record -- /bin/sh -c 'ls / | sort' >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
evidence=$(there)
evidence=${evidence% }
[[ -d $state/$evidence ]] || fail "there is no snapshot: $evidence"
kept=0
while as_member "$T/bin/ptctl" snapshot >/dev/null 2>&1 && as_member "$T/bin/ptctl" keep latest 2>"$T/err"; do
	kept=$((kept + 1))
	[[ $kept -lt 200 ]] || fail "one user may keep $kept snapshots: $(du -sm "$T/state")"
done
grep "with it more would be kept for user $NOBODY" "$T/err" || fail "he kept $kept, then: $(cat "$T/err" "$T/ptd.log")"
taken=$(du -sm "$state" | cut -f1)
echo "kept $kept snapshots: $taken MiB of 64"
[[ $kept -gt 0 && $taken -lt 32 ]] || fail "$kept snapshots are kept, $taken MiB"
"$O/ptctl" keep "$evidence" && "$O/ptctl" keep --release "$evidence" || fail "root cannot keep any"
"$O/ptctl" keep --release $(ls "$state") || fail "what is kept cannot be released"
for id in $(ls "$state"); do
	[[ $id == "$evidence" ]] || "$O/ptctl" rm "$id" || fail "$id cannot be removed"
done
head -c 6000000 /dev/urandom >"$T/private/random"
chown -R $RUNNER:$RUNNER "$T/private"
cat >"$T/bin/attack-evidence" <<'END'
#!/bin/bash
# UID-OF-WHO-RUNS UID-OF-WHO-ASKS GROUP FOLDER
cd /
as() { setpriv --reuid "$1" --regid "$1" "${@:2}"; }
as "$1" --clear-groups "${0%/*}/ptctl" record -f summary -- /bin/bash -c '
	while true; do
		for program in "$1"/program.*; do "$program" 0.2 & done
		wait
	done' bash "$4" &
for i in {1..4}; do
	rm -f "$4"/program.*
	for k in {1..6}; do
		{ cat /bin/sleep "$4/random"; echo "$i $k"; } >"$4/new"
		chown "$1" "$4/new"
		chmod 755 "$4/new"
		mv "$4/new" "$4/program.$i$k"
	done
	sleep 2.5
	"${0%/*}/ptctl" snapshot >>"${0%/*}/asked" || exit
done
while true; do
	for i in {1..8}; do as "$2" --groups "$3" "${0%/*}/ptctl" record -- /bin/true; done
	as "$2" --groups "$3" "${0%/*}/ptctl" snapshot
done
END
chmod 755 "$T/bin/attack-evidence"
attack 24 "$T/bin/attack-evidence" $RUNNER $NOBODY $PTD_ID "$T/private"
asked=$(($(grep -c "user $NOBODY) asked for snapshot" "$T/ptd.log") - kept - 1))
copies=$(grep -c "$T/private/program.*: cannot keep a copy of this object of user $RUNNER" "$T/ptd.log")
echo "$asked snapshots were asked for, $(grep -c "removed snapshot" "$T/ptd.log") removed; $copies copies were refused"
[[ $asked -ge 5 && $copies -ge 1 ]] || fail "that was no attack: $(tail -n 20 "$T/ptd.log" "$T/attacker.out")"
[[ $(wc -l <"$T/bin/asked") -eq 4 ]] || fail "root has $(wc -l <"$T/bin/asked") snapshots of the attack"
grep -q "it is more than its user's share of the snapshots that others take	$T/private/program" "$state"/*/objects.map ||
	fail "all programs of the attacker fit into root's snapshots"
for id in "$evidence" $(<"$T/bin/asked"); do
	[[ -d $state/$id ]] || fail "root's snapshot $id is gone, there are $(there): $(grep removed "$T/ptd.log")"
	whole "$id"
done
"$O/ptdecode" -f summary "$state/$evidence" | grep "^Gaps: 0" || fail "$evidence has gaps"
while read -r thread _; do
	"$O/ptdecode" -f addresses --tid "${thread#*.}" "$state/$evidence" | "$O/tools/emulog" --compare "$T/honest.log" "$thread" ||
		fail "$evidence, thread $thread"
done < <("$O/tools/emulog" "$T/honest.log")
echo ok
