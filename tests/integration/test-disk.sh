#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A disk that is full, or almost: what a snapshot removes, what it refuses, and what it says. The
# state directory is on a small tmpfs, in a namespace of mounts of its own.
if [[ ${1:-} != mounted ]]; then
	unshare --mount true 2>/dev/null || { echo "SKIP: no namespace of mounts can be made"; exit 77; }
	exec unshare --mount --propagation private "$0" mounted
fi
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

ptctl=$O/ptctl
state=$T/state/snapshots
mkdir "$T/state"

leave() {
	stop_ptd
	umount "$T/state" 2>/dev/null
}
trap 'leave; finish' EXIT

# disk OPTIONS: an empty file system for the state directory, and no ptd.
disk() {
	leave
	mount -t tmpfs -o "$1" state "$T/state" || skip "no tmpfs can be mounted"
}

# room: how many KiB are free. fill KIB: leave no more than that.
room() { df --output=avail -k "$T/state" | tail -1; }
fill() { head -c $((($(room) - $1) * 1024)) /dev/zero >"$T/state/filler"; }

snapshots() { ls "$state" | sort -t- -k2n | tr '\n' ' '; }
has() { [[ $(snapshots) == "$* " ]] || fail "expected snapshots $*, there are $(snapshots); $(cat "$T/ptd.log")"; }
said() { grep -q -- "$1" "$T/ptd.log" || fail "the log lacks \"$1\": $(cat "$T/ptd.log")"; }
quiet() { ! grep -q -- "removed" "$T/ptd.log" || fail "something was removed: $(cat "$T/ptd.log")"; }

# trace N: leave about N * 1.3 KiB of PT in the rings, and no snapshot. take CMD...: take a snapshot, or
# record a program; its id.
trace() {
	take record -- /bin/bash -c "for ((i = 0; i < $1; i++)); do :; done"
	rm -rf "${state:?}/$id"
}
take() {
	"$ptctl" "$@" >"$T/out" 2>&1 || fail "$*: exit status $?: $(cat "$T/out" "$T/ptd.log")"
	id=$(ls "$state" | sort -t- -k2n | tail -1)
}

echo "--- no room even without the old snapshots: they stay"
disk size=64m
start_ptd AuxSize=64M Cpus=1
take snapshot; first=$id
take snapshot; second=$id
trace 20000
fill 1000
out=$("$ptctl" snapshot 2>&1)
r=$?
echo "exit status $r: $out"
[[ $r == 1 && $out == *"there is no room for snapshot "*": it may take 2"*" MiB and "*" inodes, "*" MiB and "*" inodes are free"* ]] ||
	fail "exit status $r: $out"
has "$first" "$second"
(cd "$state/$second" && sha256sum --quiet --strict -c SHA256SUMS) || fail "the newest snapshot is damaged"
quiet
[[ -z $(find "$state" -name '.new*') ]] || fail "left: $(find "$state" -name '.new*')"

echo "--- room without the oldest: it goes, and is named"
rm "$T/state/filler"
take snapshot; third=$id
has "$first" "$second" "$third"
rm -r "${state:?}/$first" "${state:?}/$second"
take snapshot; fourth=$id
fill 8000
take snapshot; fifth=$id
has "$fourth" "$fifth"
said "removed snapshot $third, 2[0-9.]* MiB: there was no room for the next one"
! grep -q "removed snapshot $fourth" "$T/ptd.log" || fail "more was removed than had to be"

echo "--- the newest stays until the next one is there"
disk size=256m
start_ptd AuxSize=64M Cpus=1 MaxUse=1K
take snapshot; first=$id
trace 20000
take snapshot; second=$id
has "$second"
said "removed snapshot $first, .* MiB: MaxUse= or KeepFree= was reached"
fill 10000
! "$ptctl" snapshot >/dev/null 2>&1 || fail "a snapshot in no room"
has "$second"

echo "--- what snapshots share is counted once"
disk size=64m
start_ptd AuxSize=1M Cpus=1 MaxUse=8M
for _ in 1 2 3 4; do take record -- /bin/bash -c :; ids+=("$id"); done
sum=$(for i in "${ids[@]}"; do "$ptctl" info "$i" | sed -n 's/^ *bytes: //p'; done | awk '{ n += $1 } END { printf "%.0f\n", n }')
echo "the manifests say $((sum / 1024)) KiB, $(du -sk "$T/state" | cut -f1) KiB are taken"
[[ $sum -gt 8388608 ]] || fail "too little to test anything"
has "${ids[@]}"
quiet

echo "--- copies that no snapshot has go before snapshots"
disk size=256m
start_ptd AuxSize=1M Cpus=1 MaxUse=64M
head -c 30000000 /dev/urandom >"$T/random"
cat /bin/true "$T/random" >"$T/large"
chmod +x "$T/large"
take record -- /bin/true; first=$id
take record -- "$T/large"
rm -r "${state:?}/$id"
sed -i s/^MaxUse=64M/MaxUse=20M/ "$T/ptd.conf"
kill -HUP "$ptd_pid"
await grep -q "settings were read again" "$T/ptd.log"
take record -- /bin/true
has "$first" "$id"
said "removed 2[0-9.]* MiB of copies to which no snapshot links"
[[ $(du -sk "$T/state/store" | cut -f1) -lt 20000 ]] || fail "the large copy is still there"

# One user executes as many large files as may be kept. Others' are kept all the same, also one that is larger
# than what is left for others at once. What was refused is said, with the user.
if [[ $EUID == 0 ]]; then
	echo "--- two users"
	disk size=256m
	start_ptd AuxSize=1M Cpus=1 MaxUse=128M
	# program USER MIB N: a file of his. run NAME...: execute them, and take no snapshot.
	program() {
		{ cat /bin/true; head -c $(($2 << 20)) "$T/random"; echo "$1 $3"; } >"$T/program.$1.$3"
		chown "$1:$1" "$T/program.$1.$3"
		chmod 755 "$T/program.$1.$3"
	}
	run() {
		"$ptctl" record --when exit:77 -- /bin/bash -c 'for i; do "$i"; done; sleep 2' - "$@" >"$T/out" 2>&1 ||
			fail "run: $(cat "$T/out" "$T/ptd.log")"
	}
	many=() few=()
	for i in {1..20}; do program 65534 4 "$i"; many+=("$T/program.65534.$i"); done
	for i in 1 2 3; do program 65532 4 "$i"; few+=("$T/program.65532.$i"); done
	program 65531 12 1
	few+=("$T/program.65531.1")
	run "${many[@]}"
	said "program.65534.20: cannot keep a copy of this object of user 65534, .* have their share of it"
	run "${few[@]}"
	take snapshot
	for i in "${few[@]}"; do
		grep -q "^[0-9a-z].*	$i$" "$state/$id/objects.map" || fail "$i was not kept: $(cat "$T/ptd.log" "$state/$id/objects.map")"
	done
	said "removed .* MiB of copies, to which no snapshot links, of files of user 65534, who has more"
	"$ptctl" status | grep -q "Refused: objects of user 65534, [1-9][0-9]* times: it was more than their share$" || fail "status: $("$ptctl" status)"
	"$ptctl" metrics | grep -q '^ptd_refused_total{what="objects",uid="65534",reason="share"} [1-9]' || fail "metrics: $("$ptctl" metrics)"
fi

echo "--- a file with holes"
disk size=64m
start_ptd AuxSize=1M Cpus=1
cp /bin/true "$T/holes"
truncate -s 300M "$T/holes"
take record -o "$T/copy" -- "$T/holes"
grep -q "^[0-9a-f]*"$'\t'"$T/holes$" "$state/$id/objects.map" || fail "not kept: $(cat "$state/$id/objects.map" "$T/ptd.log")"
for dir in "$state/$id" "$T/copy"; do
	file=$(find "$dir/objects" -size +200M)
	cmp "$T/holes" "$file" || fail "the copy differs"
	[[ $(du -k "$file" | cut -f1) -lt 1000 ]] || fail "the copy has no holes: $(du -k "$file")"
done

echo "--- what is too old"
disk size=64m
start_ptd AuxSize=1M Cpus=1
take record -- /bin/true; first=$id
take record -- /bin/true; second=$id
"$ptctl" keep "$second" || fail "keep"
sleep 2
echo MaxAge=1s >>"$T/ptd.conf"
take record -- /bin/true; third=$id
has "$first" "$second" "$third"
"$ptctl" reload || fail "reload"
said "removed snapshot $first, .* MiB: it is older than MaxAge="
has "$second" "$third"
sleep 2
start_ptd AuxSize=1M Cpus=1 MaxAge=1s
await grep -q "removed snapshot $third" "$T/ptd.log"
has "$second"

echo "--- no room for what ran: it is decoded where the same files are, and the gaps say why elsewhere"
disk size=64m
cp /bin/true "$T/itself"
start_ptd AuxSize=1M Cpus=1 KeepFree=100%
record_unkept() { # ARGUMENT...
	local status=0
	"$ptctl" record "$@" -- "$T/itself" >"$T/out" 2>&1 || status=$?
	[[ $status == 124 ]] || fail "exit status $status: $(cat "$T/out")"
	[[ $(head -1 "$T/out") == "ptctl: no room to keep "[1-9]*" file"*" that ran: "*KeepFree=* ]] || fail "$(cat "$T/out")"
	[[ $(grep -c "no room" "$T/out") == 1 ]] || fail "said more than once: $(cat "$T/out")"
}
record_unkept -o "$T/unkept"
id=$(ls "$state")
status=0
"$ptctl" snapshot -o "$T/unkept.again" >"$T/out" 2>&1 || status=$?
[[ $status == 7 && $(head -1 "$T/out") == "ptctl: no room to keep "* ]] || fail "snapshot: exit status $status: $(cat "$T/out")"
grep -q "^- sha256:$(sha256sum <"$T/itself" | cut -d' ' -f1) the disk is full.*$T/itself$" "$T/unkept/objects.map" || fail "$(cat "$T/unkept/objects.map")"
"$O/ptdecode" summary "$T/unkept" >"$T/summary" 2>"$T/said" || fail "exit status $?: $(cat "$T/said")"
grep -qx "Gaps: 0" "$T/summary" || fail "$(grep -A5 ^Gaps "$T/summary")"
[[ $(grep -c "lacks .* of this machine .* build-id or the hash of what ran" "$T/said") == 1 ]] || fail "$(cat "$T/said")"
record_unkept --then summary
grep -qx "Gaps: 0" "$T/out" || fail "--then: $(cat "$T/out")"
# Another build of it is not what ran.
cp /bin/false "$T/itself"
status=0
"$O/ptdecode" summary "$T/unkept" >"$T/summary" 2>"$T/said" || status=$?
[[ $status == 3 ]] || fail "exit status $status"
grep -A9 ^Gaps "$T/summary" | grep -q "object has another build-id" || fail "$(grep -A5 ^Gaps "$T/summary")"
# It is on no other machine.
rm "$T/itself"
"$O/ptdecode" summary "$T/unkept" >"$T/summary" 2>"$T/said"
grep -A9 ^Gaps "$T/summary" | grep -q "object not found" && ! grep -q "packets contradict" "$T/summary" ||
	fail "$(grep -A5 ^Gaps "$T/summary")"

echo "--- no room for what has no build-id: what is at its path is taken by its content"
rm -r "$T/unkept"
objcopy --remove-section .note.gnu.build-id /bin/true "$T/itself" || fail "objcopy"
record_unkept -o "$T/unkept"
"$O/ptdecode" summary "$T/unkept" >"$T/summary" 2>"$T/said" || fail "exit status $?: $(cat "$T/said")"
grep -qx "Gaps: 0" "$T/summary" || fail "$(grep -A5 ^Gaps "$T/summary")"
echo >>"$T/itself"
"$O/ptdecode" summary "$T/unkept" >"$T/summary" 2>"$T/said"
grep -A9 ^Gaps "$T/summary" | grep -q "object not found" || fail "$(grep -A5 ^Gaps "$T/summary")"

echo "--- inodes are room"
disk size=64m,nr_inodes=400
start_ptd AuxSize=1M Cpus=1 MaxUse=1T KeepFree=50%
n=0
until grep -q "removed snapshot .*: MaxUse= or KeepFree= was reached" "$T/ptd.log"; do
	take record -- /bin/true
	[[ $((++n)) -lt 30 ]] || fail "nothing is removed: $(df -i "$T/state")"
done
echo "after $n snapshots; $(df --output=iavail "$T/state" | tail -1) of 400 are free"
[[ $(df --output=iavail "$T/state" | tail -1) -ge 200 ]] || fail "KeepFree= is not kept"
echo ok
