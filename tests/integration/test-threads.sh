#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Every output is the same, byte for byte, whatever the number of threads, and wherever spans are cut: of threads
# that migrate, of code that is changed, of damaged packets, of each golden case. Under TSan, eight threads race
# for nothing. long-threads.sh takes more.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

# same THREADS INPUT...: every format is as with one thread, of which the bytes are in $T/1.
same() {
	rm -rf "$T/$1"
	mkdir "$T/$1"
	"$O/tools/formats" "$1" "$T/$1" "${@:2}" || fail "$1 threads"
	diff -r "$T/1" "$T/$1" >"$T/diff" || fail "$1 threads: $(head -c 1000 "$T/diff")"
	rm -r "${T:?}/$1"
}

# Threads that migrate; code that is changed after it ran.
start_ptd PT=psb_period=0
record relay sh -c "for i in 1 2 3; do '$O/targets/relay.c' '$O/targets/relay.c' /bin/true & done; wait"
record patch "$O/targets/patch.c"
stop_ptd

# Packets that are overwritten here and there, between two PSBs of a ring.
cp -r "$T/relay" "$T/damaged"
LC_ALL=C grep -obUaP '(\x02\x82){8}' "$T/relay/data" | cut -d: -f1 | awk '
	$1 - last > 400 && $1 - last < 8192 && n++ % 5 == 2 { print last + 300 } { last = $1 }' >"$T/places"
while read -r at; do
	head -c 40 /dev/zero | tr '\0' '\377' | dd of="$T/damaged/data" bs=1 seek="$at" conv=notrunc status=none
done <"$T/places"

recordings=("$T"/{relay,patch,damaged})
mkdir "$T/1"
"$O/tools/formats" 1 "$T/1" "${recordings[@]}" || fail "one thread"
for n in 2 3 8; do
	same $n "${recordings[@]}"
done
awk '$3 ~ /^\[/ { if (($2 in cpu) && cpu[$2] != $3) n++; cpu[$2] = $3 } END { exit !n }' "$T/1/relay/text" ||
	fail "no thread migrated"
grep -q '^#.* gap: ' "$T/1/damaged/text" || fail "no gap in the damaged recording"
for name in relay patch damaged; do
	echo "$name: $(($(stat -c %s "$T/1/$name/addresses") / 8)) instructions, $(grep -c '^#.* gap: ' "$T/1/$name/text") gaps"
done

# However spans are cut, and whatever is decoded ahead.
"$O/tools/cuts" "${recordings[@]}" || fail "cuts"

# ptdecode with its own default, and what it says.
for n in 1 3; do
	"$O/ptdecode" --force --threads $n summary --rows=100000 -o "$T/summary.$n" "$T/damaged" 2>"$T/said.$n"
	echo $? >>"$T/said.$n"
done
cmp "$T/summary.1" "$T/summary.3" && diff "$T/said.1" "$T/said.3" || fail "ptdecode --threads 3"

mkdir "$T/golden" "$T/cases"
"$O/tools/golden" -k "$T/golden" tests/golden/*.case >/dev/null || fail "golden -k"
# A stream without records is of one thread and one piece.
golden=()
for input in "$T"/golden/*/input; do
	name=$(basename "${input%/input}")
	grep -q ^records "tests/golden/$name.case" || continue
	ln -s "$input" "$T/cases/$name"
	golden+=("$T/cases/$name")
done
[[ ${#golden[@]} -gt 90 ]] || fail "only ${#golden[@]} golden cases"
mv "$T/1" "$T/recordings"
mkdir "$T/1"
"$O/tools/formats" 1 "$T/1" "${golden[@]}" || fail "golden cases by one thread"
n=$(cat "$T"/1/*/result | grep -vc ^-)
[[ $n -eq ${#golden[@]} ]] || fail "only $n golden cases were decoded"
same 3 "${golden[@]}"
echo "${#golden[@]} golden cases"

[[ -z ${PTD_ASAN:-} ]] || exit 0
[[ -e $O/tsan/tools/formats ]] || skip "nothing was built with TSan: make tests"
mkdir "$T/races"
"$O/tsan/tools/formats" 8 "$T/races" "$T/damaged" 2>"$T/races.err" || fail "under TSan: $(cat "$T/races.err")"
[[ ! -s $T/races.err ]] || fail "races: $(head -60 "$T/races.err")"
diff -r "$T/recordings/damaged" "$T/races/damaged" >"$T/diff" || fail "under TSan: $(head -c 1000 "$T/diff")"
echo "no races"
