#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Parts of larger recordings, which test-part.sh leaves out: threads that migrate, JIT code, rings that
# wrapped, gaps, a guest with its kernel's code, and a program of some ten million instructions, most of whose
# PT is not decoded for a part. What a filter leaves of the whole text is what each part must be.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need qemu-x86_64 python3

# compare HOW-MANY RECORDING [PATTERN-OF-ITS-TEXT]...: what is added to a recording of JIT code, and damage, is
# not in its SHA256SUMS.
compare() {
	local n=$1 name=$2
	shift 2
	"$O/ptdecode" --force text -o "$T/text" --also "summary -o $T/summary" "$T/$name"
	for pattern; do
		grep -qE -m1 -- "$pattern" "$T/text" || fail "$name has no $pattern"
	done
	echo "--- $name: $(grep -vc '^#' "$T/text") instructions, $(sed -n 's/^Gaps: *//p' "$T/summary") gaps," \
		"$(migrations "$T/text") migrations"
	rm "$T/text"
	"$O/tools/part" -f -n "$n" "$T/$name" || fail "parts of $name differ"
}

# migrations TEXT: how often a thread goes on on another CPU
migrations() {
	cut -c17-48 "$1" | uniq -w 24 | awk '{ sub(/:.*/, ""); id = $1; sub(/.*\[/, ""); if (id in cpu && cpu[id] != $0) n++; cpu[id] = $0 }
		END { print n + 0 }'
}

start_ptd Cpus=3 PT=psb_period=1
record threads "$O"/targets/relay.c "$O"/targets/relay.c "$O"/targets/relay.c /bin/true
compare 6 threads
drop threads
record_jit jit "$O/targets/jit.c" "$T/dumps"
compare 8 jit '\(\[jit'
drop jit
start_ptd Cpus=2 AuxSize=64K
record wrapped sh -c 'for i in 1 2 3; do ls -l / | sort | head -3; done'
compare 6 wrapped '# .* gap: '

# Bytes at the eighths of each CPU's PT are no packets any more: what follows them up to the next PSB is lost.
cp -r "$T/wrapped" "$T/damaged"
python3 - "$T/damaged/data" <<-'EOT' || fail "there is no PT to damage"
	import struct, sys
	AUXTRACE = 71
	damaged = 0
	with open(sys.argv[1], 'r+b') as file:
	    data = file.read()
	    at, size = struct.unpack_from('<QQ', data, 40)
	    end = at + size
	    while at < end:
	        kind, _, size = struct.unpack_from('<IHH', data, at)
	        pt = struct.unpack_from('<Q', data, at + 8)[0] if kind == AUXTRACE else 0
	        at += size
	        for i in range(1, 8) if pt > 1024 else ():
	            file.seek(at + pt * i // 8)
	            damaged += file.write(b'\x02\x0f' * 32)
	        at += pt
	sys.exit(damaged == 0)
EOT
compare 6 damaged '# .* gap: .*[^0-9][0-9]+ bytes'
drop damaged

# The guest's programs and its kernel, by perf: the snapshot that ptd takes of a guest would have 60 million
# instructions of ptd itself, too many for their text to be held.
if command -v qemu-system-x86_64 busybox cpio perf >/dev/null && tests/guest/kernel.sh "$O"; then
	cat >"$T/script" <<-'EOT'
		echo -1 >/proc/sys/kernel/perf_event_paranoid
		echo 0 >/proc/sys/kernel/kptr_restrict
		perf record -q -o /out/kernel -a --kcore --snapshot=e -m,32M -e intel_pt// \
			sh -c 'ls -l /bin | sort | tail -3'
	EOT
	tests/guest/boot.sh -p -t 900 -o "$T" "$T/script" "$(command -v perf)" >"$T/err" 2>&1 ||
		{ cat "$T/err"; fail "the guest's script failed"; }
	compare 6 kernel '\(\[kernel'
	drop kernel
else
	echo "(without a guest)"
fi

# lines OPTIONS...: the instructions of a part.
lines() {
	"$O/ptdecode" text "$@" "$T/long" | grep -v '^#'
}
start_ptd Cpus=2
record long "$O/targets/requests.c"
tid=$("$O/ptdecode" text --last 1 "$T/long" | sed -nE 's|^.* [0-9]+/([0-9]+) +\[.*|\1|p' | tail -1)
lines | grep -F "/$tid " | tail -n 1000000 >"$T/million"
echo "--- long: $("$O/ptdecode" summary "$T/long" | sed -n 's/^Instructions: *//p') instructions"
for n in 1 1000 1000000; do
	lines --tid "$tid" --last $n >"$T/part"
	tail -n $n "$T/million" | cmp - "$T/part" || fail "the last $n instructions differ"
done
# Times of the last million, as far apart as they are. The first one may be that of instructions before it, too.
mapfile -t times < <(awk 'NR % 1000 == 0' "$T/million" | sed -E 's/.*\] +([0-9]+\.[0-9]+): .*/\1/' | uniq |
	awk '{ t[NR] = $0 } END { for (i = 1; i < 7; i++) print t[1 + int(i * (NR - 1) / 6)] }' | uniq)
[[ ${#times[@]} -gt 2 ]] || fail "there are only ${#times[@]} times"
awk -v times="${times[*]}" -v to="$T/expected" 'BEGIN { n = split(times, t, " ") }
	match($0, /[0-9]+\.[0-9]+: /) { at = substr($0, RSTART, RLENGTH - 2)
		for (i = 1; i < n; i++) if (at >= t[i] && at < t[i + 1]) print >(to "-" i) }' "$T/million"
for ((i = 0; i + 1 < ${#times[@]}; i++)); do
	lines --time "${times[i]},${times[i + 1]}" | cmp - "$T/expected-$((i + 1))" ||
		fail "the time from ${times[i]} to ${times[i + 1]} differs"
done
echo "${#times[@]} times compared"
"$O/ptdecode" summary --time "${times[0]},${times[1]}" "$T/long" | grep "^Out of scope: [1-9]" ||
	fail "all was decoded for a part"
