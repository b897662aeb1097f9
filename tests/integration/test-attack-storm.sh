#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program maps and unmaps its code as quickly as it can: tens of thousands of records a second, which say
# the same or do not. What ptd knows of others must reach back as far as before, and the log must name the
# program, or the user.
#
# Alone: the attack takes the CPUs of other tests.
. "$(dirname "$0")/lib/attack.sh"

# A snapshot holds copies of switch records, and the busier the machine, the more of its rings they fill.
GROWTH_KIB=$((GROWTH_KIB + 256 * 1024))

# storm KIND N SECONDS: N mappings at a time, with a pause between; runs the attack; and sees how far the sideband reaches back.
storm() {
	attack_start pt SidebandMax=8M SwitchSize=64M
	# As a service it has a part of the CPUs of its own, whatever a user's programs do.
	renice -n -10 -p /proc/$ptd_pid/task/* >/dev/null 2>&1 || renice -n -10 $(ls /proc/$ptd_pid/task) >/dev/null
	attack 14 as_nobody sh -c 'while :; do "$1" "$2" "$3"; sleep "$4"; done' sh "$T/bin/storm.c" "$@"
	# The snapshot is taken in the middle of the attack.
	reach=$(awk -F= '{ x[$1] = $2 } END { print int((x["clock_ns"] - x["sideband_since_ns"]) / 1000000) }' \
		"$snapshot/manifest")
	echo "sideband reaches back for $reach ms"
	[[ $reach -ge 5000 ]] || fail "the storm made ptd forget what was before it"
}

ATTACK_NOTED="^sideband_dropped.65534=[1-9]" storm burst 3000 0.03
grep "user 65534 has more than their share of SidebandMax=" "$T/ptd.log" || fail "the log does not name the user"
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
(cd / && as_member "$T/bin/ptctl" record --then summary -- /bin/bash -c "for i in {1..8}; do $T/bin/maps; done") >"$T/out" 2>&1
grep " records dropped$" "$T/out" || fail "the attacker is not told why: $(cat "$T/out")"
"$O/ptctl" snapshot -o "$T/all" >/dev/null || fail "no snapshot: $(tail "$T/ptd.log")"
"$O/ptdecode" summary "$T/all" | grep -E " (records dropped|code not mapped)$" >"$T/gaps"
cat "$T/gaps"
grep -q "records dropped" "$T/gaps" && ! grep "code not mapped" "$T/gaps" || fail "the gaps do not say what they are"
while read -r thread _; do
	"$O/ptdecode" export addresses --tid "${thread#*.}" "$T/all" | "$O/tools/emulog" --compare "$T/root.log" "$thread" ||
		fail "root's thread $thread"
done < <("$O/tools/emulog" "$T/root.log")
