#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Parts of traces: what is listed of a process, thread, CPU, name, symbol, object or time equals what a
# filter leaves of the whole text, on all golden cases (gaps, threads that migrate, the
# kernel's code, damage) and on recordings. What was not asked for is no gap, and the bytes add up.
. "$(dirname "$0")/lib/common.sh"

mkdir "$T/golden"
"$O/tools/golden" -k "$T/golden" tests/golden/*.case >"$T/inputs" || fail "golden -k"
mapfile -t inputs <"$T/inputs"
"$O/tools/part" -c 1 -n 3 "${inputs[@]}" || fail "parts of golden cases differ"

# What is not asked for has no gaps.
input_of() {
	grep -m 1 "^$T/golden/$1\(/\|$\)" "$T/inputs" || fail "no input is of $1"
}
"$O/ptdecode" summary "$(input_of scope)" >/dev/null
[[ $? -eq 3 ]] || fail "scope has no gap"
for part in "--pid 20" "--cpu 7" "--time 0.000001,"; do
	"$O/ptdecode" summary $part "$(input_of scope)" >"$T/summary" 2>"$T/err" || [[ $? == 4 ]] || fail "scope $part: $(cat "$T/err")"
	grep -qx "Gaps: 0" "$T/summary" || fail "scope $part: the summary has gaps"
	grep -q "^Out of scope: [1-9]" "$T/summary" || fail "scope $part: nothing is out of scope"
done

says() {
	local expected=$1
	shift
	"$O/ptdecode" text "$@" >"$T/out" 2>"$T/err"
	[[ $? -eq 1 ]] && grep -qF -- "$expected" "$T/err" || { cat "$T/err"; fail "ptdecode $*"; }
}
one=${inputs[0]}
says '"yesterday": expected FROM,TO' --time yesterday "$one"
says '"21:02:03": the input does not state the time of day' --time 21:02:03 "$one"

need qemu-x86_64 python3
start_ptd Cpus=2 PT=psb_period=1
record threads "$O/targets/relay.c" /bin/true
record family sh -c 'echo a | cat; (exit 3); true'
"$O/tools/part" -c 1 -n 4 "$T/threads" "$T/family" || fail "parts of recordings differ"

# Of a larger one most is not read. What is read is checked by its pieces, and the rest is not.
record long /usr/bin/python3 -I -S -c 'print(sum(i * i % 7 for i in range(60000)))'
[[ $(wc -l <"$T/long/pieces") -eq $((($(stat -c %s "$T/long/data") + 1048575) / 1048576)) ]] || fail "a piece is not a MiB"
"$O/ptdecode" text --last 1000 "$T/long" >"$T/part" || fail "the last 1000 instructions: exit status $?"
[[ $(grep -vc '^#' "$T/part") -eq 1000 ]] || fail "there are not 1000 last instructions"
"$O/ptdecode" summary --last 1000 "$T/long" >"$T/summary" || fail "their summary: exit status $?"
awk '/^ *all / { exit !($3 * 20 < $2) }' "$T/summary" || fail "more than a twentieth of the PT is decoded for them"

# Whatever byte is changed, the part is what it was or refused, and that is refused which the part needs, whatever
# the number of threads.
cp -r "$T/long" "$T/copy"
n_pieces=$(wc -l <"$T/long/pieces") n_refused=0
for ((i = 0; i < n_pieces; i++)); do
	at=$((i * 1048576 + 5000))
	printf 'damaged' | dd of="$T/copy/data" bs=1 seek=$at conv=notrunc 2>/dev/null
	for threads in 1 2 8; do
		"$O/ptdecode" text --threads $threads --last 1000 "$T/copy" >"$T/out" 2>"$T/err.$threads"
		echo "exit status $?" >>"$T/err.$threads"
		cmp -s "$T/err.1" "$T/err.$threads" ||
			{ cat "$T/err.1" "$T/err.$threads"; fail "damage at $at, $threads threads"; }
		if grep -qx "exit status 0" "$T/err.$threads"; then
			cmp "$T/out" "$T/part" || fail "damage at $at changes a part"
		else
			grep -q "is not the file that was written" "$T/err.$threads" ||
				{ cat "$T/err.$threads"; fail "damage at $at"; }
		fi
	done
	grep -qx "exit status 0" "$T/err.1" || n_refused=$((n_refused + 1))
	dd if="$T/long/data" of="$T/copy/data" bs=1 skip=$at seek=$at count=7 conv=notrunc 2>/dev/null
done
echo "$n_refused of $n_pieces pieces are needed for the last 1000 instructions"
[[ $n_refused -ge 2 ]] || fail "the first and the last piece are needed"
printf 'damaged' | dd of="$T/copy/data" bs=1 seek=2000000 conv=notrunc 2>/dev/null
says "is not the file that was written" "$T/copy"
"$O/ptdecode" text --cpu 7 "$T/copy" >/dev/null 2>"$T/err"
[[ $? == 4 ]] || fail "PT is checked that is not asked for: $(cat "$T/err")"
sed -i '1s/^./x/' "$T/copy/pieces"
says "pieces is not the file that was written" --last 1000 "$T/copy"
rm "$T/copy/pieces"
says "pieces is missing" --last 1000 "$T/copy"
sed -i '/  pieces$/d' "$T/copy/SHA256SUMS"
says "data is not the file that was written" --last 1000 "$T/copy"

# What is asked for and was not there is said, and has a status of its own.
for asked in "summary --tid 99999" "text --comm nobody" "functions --symbol nosuch" "calls --object /no/such" \
	"latency --function=nosuch" "probes"; do
	# shellcheck disable=SC2086
	"$O/ptdecode" $asked "$T/family" >/dev/null 2>"$T/err"
	status=$?
	[[ $status == 4 && -s $T/err ]] || fail "$asked: status $status: $(cat "$T/err")"
done
