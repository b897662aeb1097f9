#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd is killed and restarted while it records a guest with true PT, and so is its keeper: a snapshot that is taken
# afterwards has all that two processes did meanwhile, instruction by instruction.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

# Each is a start of ptd whose instructions are all logged.
moments="0.6 0.3 0.1${PTD_LONG:+ 0.4 0.2}"
cat tests/guest/recorder.sh - >"$T/script" <<EOF
moments="$moments"
EOF
cat >>"$T/script" <<'EOF'
n_taken() { # N: a ptd has taken over so often
	[ "$(grep -c "took over the rings" /out/ptd.log)" = $1 ]
}
given_anew() { # the next keeper has the events of both CPUs, and the two files beside them
	[ "$(ls -l /proc/$(pidof ptd-keeper)/fd | grep -c "perf_event\|memfd")" = 8 ]
}
end() { # SIGNAL
	kill -$1 $ptd
	wait $ptd 2>/dev/null
}
start_told $few_mtc AuxSize=256M SwitchSize=4M TaskSize=1M KeepRings=60
pidof ptd-keeper >/dev/null || fail "there is no keeper"
echo 1 >$softpt/log
guest.c >/out/pids &
program=$!
workers() {
	cat /proc/$program/task/$program/children
}
n=0
for moment in $moments; do
	sleep $moment
	kill -0 $program || fail "the programs have ended after $n kills"
	end KILL
	sleep 0.$n
	# On a fast machine they would fill the rings while the next ptd starts.
	kill -STOP $(workers)
	go
	kill -CONT $(workers)
	n=$((n + 1))
	n_taken $n || fail "it did not take the rings over"
done
kill -KILL $(pidof ptd-keeper)
wait_for pidof ptd-keeper
wait_for given_anew
end TERM
go
n_taken $((n + 1)) || fail "it did not take the rings over from another keeper"
kill -0 $program || fail "the programs have ended before the last restart"
kill $(workers)
wait $program || fail "the programs failed"
echo 0 >$softpt/log
rm -rf /out/whole
ptctl snapshot -o /out/whole >/dev/null || fail "snapshot"

# PT that is given up is nobody's, and comes back.
ptctl pause || fail "pause"
grep -q "on 0" $softpt/cpu0/stats || fail "PT is on although it was given up: $(cat $softpt/cpu0/stats)"
ptctl resume || fail "resume"
grep -q "on 1" $softpt/cpu0/stats || fail "PT is off although it was resumed"

# Rings of another size are made anew, and those that nobody takes over are freed.
end KILL
sed -i s/^AuxSize=.*/AuxSize=1M/ /root/ptd.conf
go
n_taken $((n + 1)) || fail "it took over rings of another size"
status_has "1.0 MiB of PT" || fail "status: $(ptctl status)"
sed -i s/^KeepRings=.*/KeepRings=1/ /root/ptd.conf
ptctl reload || fail "reload"
end KILL
gone() { ! pidof ptd-keeper; }
wait_for gone
grep -q "on 0" $softpt/cpu0/stats || fail "PT that nobody owns is on: $(cat $softpt/cpu0/stats)"
go
n_taken $((n + 1)) || fail "it took over what was freed"
stop
rm -rf /out/state
exit 0
EOF
MEMORY=3072 tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" "$O/ptd" "$O/ptd-keeper" "$O/ptctl" "$O/targets/guest.c" \
	2>"$T/err" | tee "$T/printed" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"
(cd "$T/out/whole" && sha256sum --quiet -c SHA256SUMS) || fail "sums"
pids=$(sed 's/:.*//; s/^/-p /' "$T/out/pids")
[[ $(wc -l <"$T/out/pids") = 2 ]] || fail "two processes should have printed: $(cat "$T/out/pids")"
"$O/tools/exact" $pids "$T/out/whole" "$T/log/1" >"$T/exact" || { grep -v ^gap "$T/exact"; fail "it is not what ran"; }
tail -3 "$T/exact"
