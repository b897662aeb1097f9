#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A JIT that writes no jitdump, only /tmp/perf-PID.map: its code is decoded as it ran, and carries the name
# of the last line of the map that has it, if it is the code that line is about.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need qemu-x86_64 python3

# names_of MODE: what the code of targets/mapnames is called, and how many instructions have that name.
names_of() {
	"$O/ptctl" record -o "$T/made" -- "$O/targets/mapnames.c" "$1" >"$T/maps" 2>"$T/err" ||
		{ cat "$T/err"; fail "record mapnames $1"; }
	xargs rm -f <"$T/maps"
	"$O/ptdecode" --force summary --json "$T/made" | python3 -c '
import json, sys
got = json.load(sys.stdin)["symbols"]
print(*sorted("%s=%d" % (s["symbol"] or "-", s["instructions"]) for s in got if s["object"] == "[anon]"))'
	rm -r "$T/made"
}

start_ptd
while read -r mode wanted; do
	got=$(names_of "$mode")
	[[ $got == "$wanted" ]] || fail "mapnames $mode: $got, must be $wanted"
	echo "mapnames $mode: $got"
done <<-EOT
	jvm a=20300 b=40300
	reuse -=20300 b=40300
	append -=20300 b=40300
	fork a=20300 b=40300
	child a=20300 b=40300
	end -=40300 a=20300
EOT
stop_ptd

need node
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds"

cat >"$T/script.js" <<'EOT'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
let sum = 0; for (let i = 0; i < 30; i++) sum += fib(16);
console.log(sum, "ready"); process.stdin.resume();
EOT
record_alive node env -u NODE_EXTRA_CA_CERTS -C "$T" node --perf-basic-prof "$T/script.js"

# Lines of text: who pid/tid [cpu] time: address bytes, instruction, symbol (object). Of addresses that
# were used twice the map does not say when: there either name will do.
"$O/ptdecode" --force text --object '[anon]' "$T/node" | grep -F '([anon])' | python3 -c '
import bisect, collections, re, sys
lines = [l.rstrip("\n").split(" ", 2) for l in open(sys.argv[1], errors="surrogateescape")]
names = collections.defaultdict(set)
spans = sorted((int(a, 16), int(a, 16) + int(n, 16), name) for a, n, name in lines)
starts = [s[0] for s in spans]
longest = max(s[1] - s[0] for s in spans)
right = wrong = unnamed = fib = 0
for line in sys.stdin:
    ip = int(re.search(r": +([0-9a-f]+) ", line).group(1), 16)
    at = bisect.bisect_right(starts, ip) - 1
    wanted = set()
    while at >= 0 and starts[at] > ip - longest:
        if ip < spans[at][1]: wanted.add(spans[at][2])
        at -= 1
    if not wanted:
        unnamed += 1
    elif any(" " + w + " ([anon])" in line or " " + w + "+0x" in line for w in wanted):
        right += 1
        fib += "fib" in line
    else:
        wrong += 1
        if wrong < 10: print(line.rstrip(), "must be one of", wanted)
print(right, "named as in the map,", fib, "of them fib,", unnamed, "in no line of it,", wrong, "wrong")
sys.exit(wrong > 0 or fib < 1000)' "$T"/node/jit/perf-*.map || fail "names"
