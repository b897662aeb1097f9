#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program maps and unmaps its code as quickly as it can: tens of thousands of records a second, which say
# the same or do not. What ptd knows of others must reach back as far as before, and the log must name the
# program, or the user. Beside it an honest user executes programs that live for a moment: all of their
# records must be in the snapshot.
#
# Alone: how soon ptd answers is measured.
. "$(dirname "$0")/attack.sh"

# honest_user: executes honest-1, honest-2, ... of user 65532, and leaves in $T/honest.N when that was.
honest_user() {
	local i
	for ((i = 1; ; i++)); do
		cp "$T/bin/once" "$T/bin/honest-$i" >/dev/null
		as_other "$T/bin/honest-$i" >/dev/null
		"$O/ptctl" status >"$T/status" 2>/dev/null && "$O/ptctl" metrics >"$T/metrics" 2>/dev/null &&
			mv "$T/status" "$T/status.last" && mv "$T/metrics" "$T/metrics.last"
		echo "$i ${EPOCHREALTIME/[.,]/}" >>"$T/honest"
		sleep 0.2
	done
}

# storm KIND N SECONDS: N mappings at a time, with a pause between; runs the attack; leaves in $T/records what the snapshot has beside PT.
storm() {
	local honest_pid taken n missing=0
	rm -f "$T/honest" "$T"/*.last
	attack_start pt SidebandMax=8M SwitchSize=8M
	# As a service it has a part of the CPUs of its own, whatever a user's programs do.
	renice -n -10 -p /proc/$ptd_pid/task/* >/dev/null 2>&1 || renice -n -10 $(ls /proc/$ptd_pid/task) >/dev/null
	set -m
	honest_user &
	honest_pid=$!
	set +m
	attack 14 as_nobody sh -c 'while :; do "$1" "$2" "$3"; sleep "$4"; done' sh "$T/bin/storm.c" "$@"
	kill -- -$honest_pid
	wait $honest_pid 2>/dev/null
	# The snapshot is taken in the middle of the attack.
	reach=$(awk -F= '{ x[$1] = $2 } END { print int((x["clock_ns"] - x["sideband_since_ns"]) / 1000000) }' \
		"$snapshot/manifest")
	echo "sideband reaches back for $reach ms"
	[[ $reach -ge 5000 ]] || fail "the storm made ptd forget what was before it"
	"$O/ptdecode" -f sideband -o "$T/records" "$snapshot" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
	# Those that ran wholly since all records are there; those of the last second may not be drained yet.
	awk -F= 'FNR == NR {
			x[$1] = $2
			if (($1 == "sideband_since_ns" || $1 ~ /switch_oldest_ns/) && $2 + 0 > since)
				since = $2 + 0
			next
		}
		{ split($0, run, " ") }
		run[2] > (since + x["realtime_offset_ns"]) / 1000 + 1000000 &&
		run[2] < (x["clock_ns"] + x["realtime_offset_ns"]) / 1000 - 1000000 { print run[1] }' \
		"$snapshot/manifest" "$T/honest" >"$T/expected"
	n=$(wc -l <"$T/expected")
	[[ $n -ge 5 ]] || fail "the honest user executed $n programs only"
	while read -r i; do
		grep -q "honest-$i\>" "$T/records" || { missing=$((missing + 1)) && echo "honest-$i is missing"; }
	done <"$T/expected"
	echo "$n programs of the honest user, $missing missing"
	[[ $missing -eq 0 ]] || fail "records of the honest user are missing"
	! grep -q "^sideband_[a-z]*\.65532=" "$snapshot/manifest" || fail "the honest user lost records"
}

cp "$O/targets/plain.c" "$T/bin/once"
storm burst 3000 0.03
grep "user 65534 has more than his share of SidebandMax=" "$T/ptd.log" || fail "the log does not name the user"
grep "^sideband_dropped.65534=[1-9]" "$snapshot/manifest" || fail "the manifest does not say what was forgotten"
grep "^sideband_since_ns.65534=[1-9]" "$snapshot/manifest" || fail "the manifest does not say since when"
grep "sideband of user 65534, [0-9]* time" "$T/status.last" || fail "the status does not name the user: $(cat "$T/status.last")"
grep 'ptd_refused_total{what="sideband",uid="65534",reason="taken-back"}' "$T/metrics.last" || fail "the metrics do not name the user"
! grep "of user 65532" "$T/status.last" || fail "something was refused to the honest user"

storm repeat 100000 0
grep "process [0-9]* (storm.c) maps the same code more than" "$T/ptd.log" || fail "the log does not name the storm"

# What the attacker's first programs ran is not known any more, and the gaps say why. Root's, before him, is.
echo "--- what records that are gone would say"
need qemu-x86_64 cc
cat >"$T/maps.c" <<'END'
#include <fcntl.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	const int fd = open(argv[0], O_RDONLY);

	for (int i = 0; i < 2000; i++)
		if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			return 1;
	return argc - 1;
}
END
cc -o "$T/bin/maps" "$T/maps.c" || fail "cannot compile"
attack_start emu SidebandMax=1M SwitchSize=16M AuxSize=16M
mkdir "$T/root.log"
PTD_EMU_LOG=$T/root.log "$O/ptctl" record -- /bin/sh -c 'ls / | sort' >"$T/out" 2>&1 || fail "$(cat "$T/out")"
(cd / && as_nobody "$T/bin/ptctl" record -f summary -- /bin/bash -c "for i in {1..8}; do $T/bin/maps; done") >"$T/out" 2>&1
grep " records dropped$" "$T/out" || fail "the attacker is not told why: $(cat "$T/out")"
"$O/ptctl" snapshot -o "$T/all" >/dev/null || fail "no snapshot: $(tail "$T/ptd.log")"
"$O/ptdecode" -f summary "$T/all" | grep -E " (records dropped|code not mapped)$" >"$T/gaps"
cat "$T/gaps"
grep -q "records dropped" "$T/gaps" && ! grep "code not mapped" "$T/gaps" || fail "the gaps do not say what they are"
while read -r thread _; do
	"$O/ptdecode" -f addresses --tid "${thread#*.}" "$T/all" | "$O/tools/emulog" --compare "$T/root.log" "$thread" ||
		fail "root's thread $thread"
done < <("$O/tools/emulog" "$T/root.log")
