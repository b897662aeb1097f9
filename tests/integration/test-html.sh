#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The HTML report, without a browser: its page is what its policy allows, and the scripts of the page find in its data
# what other formats say of the same recording. Names that would be markup stay names.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 node objcopy

start_ptd
record --timing ls ls -l /usr
record --timing threads "$O/targets/relay.c" /bin/true
for name in ls threads; do
	"$O/ptdecode" calls --json -o "$T/$name.calls" --also "functions --json -o $T/$name.functions" --also "html -o $T/$name.html" "$T/$name" ||
		fail "ptdecode: status $?"
	python3 tests/tools/exported.py "$T/$name.calls" html "$T/$name.html" "$T/$name.functions" "$T/$name" "$O/ptdecode" \
		node tests/tools/report.mjs >"$T/said" || fail "the report of $name"
	cat "$T/said"
	grep -q 'left out: nothing$' "$T/said" || fail "the report of $name leaves something out"
done

echo "--- the moment of the snapshot, where the trace goes on behind it, and as a part that ends before it"
sed 's/^ *"snapshot": [0-9]*,$/"snapshot": 1000,/' "$T/ls.html" >"$T/earlier.html"
node tests/tools/report.mjs "$T/earlier.html" >"$T/said" || fail "the report with an earlier snapshot"
python3 - "$T/said" <<'PY' || fail "the moments of an earlier snapshot"
import json
import sys

said = json.load(open(sys.argv[1], encoding="utf-8"))
first = min(row[1] for row in said["spans"] + [other[1:] for other in said["others"]])
(taken, text), (_, end) = said["moments"]
assert (int(taken), text, end) == (first + 1000, "the snapshot was taken", "the trace ends"), said["moments"]
PY
"$O/ptdecode" html -o "$T/part.html" --time ",$(python3 -c 'import json, sys
t = json.load(open(sys.argv[1]))["calls"][0]["t"] + 1000000
print(f"{t // 10**9}.{t % 10**9:09}")' "$T/ls.calls")" "$T/ls" ||
	fail "the report of a part"
node tests/tools/report.mjs "$T/part.html" >"$T/said" || fail "the report of a part"
grep -q '"the trace ends"\]\]' "$T/said" || fail "the moments of a part: $(grep -o '"moments".*\]\]' "$T/said")"

echo "--- hostile names"
cat >"$T/hostile.c" <<'C'
__attribute__((noinline)) void first(void) { __asm__ volatile(""); }
__attribute__((noinline)) void second(void) { __asm__ volatile(""); first(); __asm__ volatile(""); }
int main(void) { second(); return 0; }
C
cc -O1 -o "$T/plain" "$T/hostile.c" || fail "cc"
objcopy --redefine-sym 'first=</script><script>alert(1)</script>' \
	--redefine-sym $'second=<!--<img src=x onerror="alert(1)">&amp;\x01\xff' "$T/plain" "$T/program" || fail "objcopy"
record hostile "$T/program"
"$O/ptdecode" html -o "$T/hostile.html" "$T/hostile" || fail "ptdecode: status $?"
node tests/tools/report.mjs "$T/hostile.html" >"$T/said" || fail "the report of hostile names"
grep -qF '</script><script>alert(1)</script>' "$T/said" || fail "the first name is missing"
grep -qF '<!--<img src=x onerror=\"alert(1)\">&amp;\u0001' "$T/said" || fail "the second name is missing"

if [[ -d $DATA/ovf01 ]]; then
	echo "--- overflows, and no time"
	for name in ovf01 hello; do
		"$O/ptdecode" --raw-pt "$DATA/$name/pt.bin" --raw-pages "$DATA/$name/code.addr,$DATA/$name/code.bin" \
			html -o "$T/raw.html" || fail "$name: status $?"
		node tests/tools/report.mjs "$T/raw.html" >/dev/null || fail "the report of $name"
	done
fi

echo "--- a part, to standard output"
"$O/ptdecode" html --last 1000 "$T/hostile" >"$T/part.html" || fail "to standard output: status $?"
node tests/tools/report.mjs "$T/part.html" >/dev/null || fail "the report of a part"
