#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A run that was longer than its ring: everybody says that the beginning was overwritten, and since when
# the recording is complete.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

# key NAME: of the manifest, as ptctl info shows it.
key() {
	"$O/ptctl" info "$id" | sed -n "s/^ *$1: //p"
}

take_id() {
	id=$(sed -n 's/^ptctl: snapshot \([^:]*\): .*/\1/p' "$T/err")
	[[ -n $id ]] || fail "no id in: $(cat "$T/err")"
}

loop='i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done'

echo "--- a run that fits"
start_ptd Cpus=1 AuxSize=16M
"$O/ptctl" record -o "$T/fits" -- sh -c "$loop" 2>"$T/err" || fail "record: $(cat "$T/err")"
take_id
! grep -q overwritten "$T/err" || fail "the ring was not: $(cat "$T/err")"
[[ $(key pt_overwritten) == 0 && -z $(key complete_since) ]] || fail "$("$O/ptctl" info "$id")"
"$O/ptdecode" summary "$T/fits" >"$T/summary" || fail "ptdecode: $?"
! grep -q Overwritten "$T/summary" || fail "$(cat "$T/summary")"
whole=$(sed -n 's/^Instructions: //p' "$T/summary")

"$O/ptctl" list | tail -1 | grep -qE ' [0-9]+ - +sh -c i=0; ' || fail "list: $("$O/ptctl" list)"

echo "--- one that lapped its ring"
start_ptd Cpus=1 AuxSize=64K
before=$(date +%s.%N)
"$O/ptctl" record -o "$T/lapped" -- sh -c "$loop" 2>"$T/err" || fail "record: $(cat "$T/err")"
after=$(date +%s.%N)
take_id
said=$(grep '^ptctl: the beginning was overwritten, ' "$T/err") || fail "record says nothing of it: $(cat "$T/err")"
echo "$said"
"$O/ptdecode" summary "$T/lapped" >"$T/summary" || fail "ptdecode: $?"
overwritten=$(grep '^Overwritten: ' "$T/summary") || fail "the summary says nothing of it: $(head "$T/summary")"
echo "$overwritten"
[[ $(sed -n 's/^Instructions: //p' "$T/summary") -lt $whole ]] || fail "the ring was not lapped, nothing tested"
bytes=$(key pt_overwritten)
[[ $bytes -gt 65536 && $overwritten == *" $bytes bytes of PT;"* ]] || fail "$bytes bytes in the manifest: $overwritten"
"$O/ptctl" list | tail -1 | grep -qE ' [0-9]+ beginning +sh -c i=0; ' || fail "list: $("$O/ptctl" list)"
[[ $(key command_complete) == no ]] || fail "command_complete is $(key command_complete)"
# All name one moment, in the time that the run took; and it is where decoding begins.
python3 - "$before" "$after" "$said" "$overwritten" "$(key complete_since)" "$T/summary" <<'EOF' || fail "the times"
import datetime, re, sys
before, after = map(float, sys.argv[1:3])
said, overwritten, manifest = sys.argv[3:6]
def moment(text):
    date = re.search(r"(\d+-\d+-\d+)[ T](\d+:\d+:\d+\.\d+)", text)
    return datetime.datetime.fromisoformat(f"{date[1]}T{date[2]}+00:00").timestamp()
first = moment(re.search("^From: .*", open(sys.argv[6]).read(), re.M)[0])
times = [moment(said), moment(overwritten), moment(manifest), first]
print(times, float(re.search(r"([0-9.]+) s after the program was started", said)[1]))
assert max(times[:3]) - min(times[:3]) < 0.01, "they differ"
assert before < times[0] < after, "not while it ran"
assert times[2] - 0.01 < first, "decoded is what was overwritten"
assert first - times[2] < 0.2, "what is complete was not decoded"
EOF

echo "--- what is taken of it without a beginning"
"$O/ptctl" snapshot >/dev/null 2>"$T/err" || fail "snapshot: $(cat "$T/err")"
grep -qE '^ptctl: it is complete since .* UTC, its last [0-9.]+ s: .* of PT before that were overwritten$' "$T/err" ||
	fail "snapshot: $(cat "$T/err")"
"$O/ptctl" --json snapshot 2>&1 | grep -qE '"pt_overwritten":[1-9][0-9]*,"complete_since":[1-9]' || fail "snapshot --json"

echo "--- the next run fits again: what was before it is not its own"
"$O/ptctl" record -o "$T/next" -- /bin/true 2>"$T/err" || fail "record: $(cat "$T/err")"
! grep -q overwritten "$T/err" || fail "of the run before: $(cat "$T/err")"
echo ok
