#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The HTML report in Chromium: of a small program, of the demo, and of one whose calls are known, ten million of them.
# The page fetches nothing, has no error, and shows what functions says. Screenshots are left in $SHOTS, if that is set.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 node chromium
SHOTS=${SHOTS:-$T/shots}
ROUNDS=500000

# report NAME: the report of the recording, how long it took, and in $T/NAME.peak the memory, in KiB.
report() {
	local TIMEFORMAT=%U
	{ time "$O/tools/peak" "$O/ptdecode" --threads 1 html -o "$T/$1.html" "$T/$1" 2>"$T/err"; } 2>"$T/$1.user" ||
		fail "the report of $1: $(cat "$T/err")"
	tail -n 1 "$T/err" >"$T/$1.peak"
	"$O/ptdecode" functions --json -o "$T/$1.functions" "$T/$1" || fail "functions of $1"
	echo "$1: $(stat -c %s "$T/$1.html") bytes, made in $(cat "$T/$1.user") s of user CPU time with $(cat "$T/$1.peak") KiB"
}

# browse NAME WANTED: use the report, and search for WANTED in it.
browse() {
	mkdir -p "$SHOTS/$1"
	timeout 300 node tests/tools/browser.mjs "$T/$1.html" "$SHOTS/$1" "$2" >"$T/$1.said" || fail "the browser with $1: status $?"
	rm -rf "$SHOTS/$1/profile"
	python3 - "$T/$1.said" "$T/$1.functions" "$2" <<'PY' || fail "the report of $1 in the browser"
import json
import re
import sys

said, wanted = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
number = lambda text: int(re.sub("\\s", "", text))
print({key: said[key] for key in ("open_ms", "ready_ms", "facts", "clicked", "found_share")})
assert not said["requests"], said["requests"]
assert not said["errors"], said["errors"]
assert said["nameless"] == 0, said["nameless"]
assert number(said["facts"]["calls"]) == wanted["calls"], said["facts"]
assert number(said["facts"]["functions"]) == len(wanted["functions"]), said["facts"]
insns = sum(f["instructions"]["self"] for f in wanted["functions"])
assert number(said["facts"]["instructions"]) == insns, (said["facts"], insns)
assert said["most_called"] == max(wanted["functions"], key=lambda f: f["calls"])["function"], said["most_called"]
found = [f for f in wanted["functions"] if sys.argv[3].lower() in f["function"].lower() or sys.argv[3].lower() in f["object"].lower()]
assert said["found"].replace("\u202f", "") == f"{len(found)} found", (said["found"], len(found))
assert any(f["function"] == said["clicked"] for f in wanted["functions"]), said["clicked"]
assert said["outlier_details"].startswith(said["latency"]) or not said["latency"], (said["latency"], said["outlier_details"])
PY
}

start_ptd
record --timing ls ls -l /usr
report ls
browse ls malloc
drop ls

echo "--- the report of the demo"
TMPDIR=$T tests/demo.sh "$O" >"$T/demo.out" 2>&1 || { tail -5 "$T/demo.out"; fail "the demo"; }
mv "$T"/ptd-demo-* "$T/demo"
mv "$T/demo/report.html" "$T/demo.html"
"$O/ptdecode" functions --json -o "$T/demo.functions" "$T/demo/snapshot" || fail "functions of the demo"
browse demo PyEval
rm -r "$T/demo"

for n in $((ROUNDS / 4)) $ROUNDS; do
	record --timing rounds$n "$O/targets/rounds.c" $n
	report rounds$n
done
big=rounds$ROUNDS
[[ $(stat -c %s "$T/$big.html") -lt $((20 << 20)) ]] || fail "the report is too large"
browse $big second
node tests/tools/report.mjs "$T/$big.html" >"$T/report" || fail "the report of $big"
python3 - "$T/report" "$T/rounds$((ROUNDS / 4)).peak" "$T/$big.peak" $ROUNDS <<'PY' || fail "what $big called"
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
n = int(sys.argv[4])
calls = {f["name"]: f["calls"] for f in report["functions"] if f["object"].endswith("rounds.c")}
wanted = {"work": 2, "round_of": 2 * n, "first": 2 * n, "second": 4 * n, "third": 4 * n + 2 * 2001, "descend": 8 * n, "on_signal": 2}
assert {name: calls.get(name) for name in wanted} == wanted, calls
# What is merged in the timeline is counted there.
shown = sum(span[4] for span in report["spans"])
assert shown == report["calls"], (shown, report["calls"])
assert report["left_out"]["resolution"] > 0 and report["text"], report["left_out"]
signals = [other for other in report["others"] if other[1] == "SIGUSR1"]
assert len(signals) == 2 and len({other[5] for other in signals}) == 2, signals
small, big = (int(open(path).read()) for path in sys.argv[2:4])
assert big < 1.1 * small + 2048, (small, big)
PY

echo "--- the command line that the page shows"
command=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["command"])' "$T/$big.said")
[[ $command == "ptdecode html -o detail.html --time="*" RECORDING" ]] || fail "the command line is $command"
part=${command#*--time=}
"$O/ptdecode" html -o "$T/detail.html" "--time=${part% RECORDING}" "$T/$big" || fail "$command: status $?"
node tests/tools/report.mjs "$T/detail.html" >"$T/detail" || fail "the report of a part"
python3 -c 'import json, sys; n = json.load(open(sys.argv[1])); assert n["calls"] > 0; print(n["calls"], n["text"])' "$T/detail" || fail "a part"
