#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptd records a guest with true PT: snapshots at seeded random moments of programs that go on, from
# rings that have wrapped, each of which decodes on the host to pieces of what the guest's CPUs ran, with
# nothing missing between them; and one of rings that have not wrapped.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

N=${N:-3}
RANDOM=${SEED:-7}
echo "seed ${SEED:-7}, $N moments"
moments=$(for ((i = 0; i < N; i++)); do echo "$((RANDOM % 2)).$((RANDOM % 900 + 100))"; done | tr '\n' ' ')

{
	cat tests/guest/recorder.sh
	echo "moments='$moments'"
	cat <<'EOF'
look() { # NAME
	# Hundredths of a second, of which the last may not be over yet.
	cut -d' ' -f1 /proc/uptime | tr -d . >/out/$1.asked
	snapshot $1
}
start_told AuxSize=64M SwitchSize=4M TaskSize=1M
echo 1 >$softpt/log
guest.c 10 >/out/pids
echo 0 >$softpt/log
look whole
stop
start_told $few_mtc AuxSize=1M SwitchSize=4M TaskSize=1M
guest.c >/dev/null &
program=$!
written() {
	awk '/^written/ { n += $2 } END { print n }' $softpt/cpu*/stats
}
before=$(written)
until [ $(($(written) - before)) -gt 3000000 ]; do
	sleep 0.2
done
i=0
for moment in $moments; do
	sleep $moment
	look $i
	i=$((i + 1))
done
kill $program
stop
rm -rf /out/state
cat /out/ptd.log
EOF
} >"$T/script"
tests/guest/boot.sh -l "$T/log" -o "$T/out" -t $((900 + 20 * N)) "$T/script" "$O/ptd" "$O/ptctl" "$O/targets/guest.c" 2>"$T/err" |
	tee "$T/printed" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

# All that the two processes did, from their first instruction to their last.
pids=$(sed 's/:.*//; s/^/-p /' "$T/out/pids")
[[ $(wc -l <"$T/out/pids") = 2 ]] || fail "two processes should have printed: $(cat "$T/out/pids")"
"$O/tools/exact" $pids "$T/out/whole" "$T/log/1" >"$T/exact" || { grep -v ^gap "$T/exact"; fail "the whole of two processes"; }
tail -3 "$T/exact"
base() { # PID: where its libc lies
	"$O/ptdecode" sideband "$T/out/whole" | grep -o "PERF_RECORD_MMAP2 $1/.*libc\.so" | grep -o 0x[0-9a-f]* | head -1
}
set -- $(sed 's/:.*//' "$T/out/pids")
[[ -n $(base "$1") && $(base "$1") != "$(base "$2")" ]] || fail "libc should lie elsewhere in each: $(base "$1") $(base "$2")"

for ((name = 0; name < N; name++)); do
	asked=$(cat "$T/out/$name.asked")0000000
	"$O/tools/pieces" -r "$asked" "$T/out/$name" "$T/log/0" >"$T/pieces" || { cat "$T/pieces"; fail "snapshot $name"; }
	echo "snapshot $name: $(tail -1 "$T/pieces")"
	awk -F= '/cpu.*head=/ && $2 > m { m = $2 } END { exit m < 1024 * 1024 }' "$T/out/$name/manifest" ||
		fail "snapshot $name: the rings had not wrapped"
done
