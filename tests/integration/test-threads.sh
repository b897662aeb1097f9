#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Every output is the same, byte for byte, whatever the number of threads: of threads that migrate, of code that is
# changed, of damaged packets, of each golden case. Under TSan, eight threads race for nothing.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

# decode INPUT THREADS: each format, into $T/THREADS.
decode() {
	local status=0
	rm -rf "$T/$2"
	mkdir "$T/$2"
	"$O/ptdecode" -e flow --force --threads "$2" -f text -o "$T/$2/text" -f summary:rows=100000 -o "$T/$2/summary" \
		-f drmemtrace -o "$T/$2/drmemtrace" -f addresses -o "$T/$2/addresses" \
		-f sideband -o "$T/$2/sideband" "$1" 2>"$T/$2/err" || status=$?
	echo "$status" >"$T/$2/status"
	[[ $status == 0 || $status == 3 || $status == 1 ]] || fail "$1, $2 threads: exit status $status"
}

# same NAME INPUT THREADS...: as with one thread.
same() {
	local n
	decode "$2" 1
	for n in "${@:3}"; do
		decode "$2" "$n"
		sed -i "s|$T/$n/|$T/1/|" "$T/$n/err"
		diff -r "$T/1" "$T/$n" >"$T/diff" || fail "$1: $n threads: $(head -c 1000 "$T/diff")"
	done
	echo "$1: $(($(stat -c %s "$T/1/addresses") / 8)) instructions, $(grep -c '^#.* gap: ' "$T/1/text") gaps"
}

# Threads that migrate and end in all ways; code that is changed after it ran.
start_ptd
record mortal sh -c "'$O/targets/mortal.c' threads; true"
record patch "$O/targets/patch.c"
stop_ptd
same mortal "$T/mortal" 2 3 8
awk '$3 ~ /^\[/ { if (($2 in cpu) && cpu[$2] != $3) n++; cpu[$2] = $3 } END { exit !n }' "$T/1/text" ||
	fail "no thread migrated"
same patch "$T/patch" 2 3 8

# Packets that are overwritten here and there.
cp -r "$T/mortal" "$T/damaged"
LC_ALL=C grep -obUaP '(\x02\x82){8}' "$T/mortal/data" | cut -d: -f1 | awk 'NR % 5 == 3 { print $1 + 300 }' >"$T/places"
while read -r at; do
	head -c 40 /dev/zero | tr '\0' '\377' | dd of="$T/damaged/data" bs=1 seek="$at" conv=notrunc status=none
done <"$T/places"
same damaged "$T/damaged" 2 3 8
grep -q '^#.* gap: ' "$T/1/text" || fail "no gap in the damaged recording"

mkdir "$T/golden"
"$O/tools/golden" -k "$T/golden" tests/golden/*.case >/dev/null || fail "golden -k"
n=0
for input in "$T"/golden/*; do
	same "$(basename "$input")" "$input" 3 >>"$T/said"
	n=$((n + 1))
done
[[ $n -gt 90 ]] || fail "only $n golden cases have records"
echo "$n golden cases"

[[ -z ${PTD_ASAN:-} ]] || exit 0
[[ -e $O/tsan/libptdecode.so.0.0.0 ]] || skip "no library that was built with TSan: make tests"
mkdir "$T/tsan" "$T/races"
cp "$O/tsan/libptdecode.so.0.0.0" "$T/tsan/libptdecode.so.0"
ln -s libptdecode.so.0 "$T/tsan/libptdecode.so"
"${CC:-cc}" -std=gnu17 -g -Iinclude -fsanitize=thread tests/tools/formats.c -L"$T/tsan" -lptdecode -o "$T/formats" ||
	fail "formats under TSan"
for name in patch damaged; do
	decode "$T/$name" 1
	rm -rf "$T/races" && mkdir "$T/races"
	LD_LIBRARY_PATH=$T/tsan "$T/formats" 8 "$T/$name" "$T/races" 2>"$T/races.err" || fail "$name under TSan: $(cat "$T/races.err")"
	[[ ! -s $T/races.err ]] || fail "$name: $(head -60 "$T/races.err")"
	for format in text drmemtrace addresses; do
		diff -r "$T/1/$format" "$T/races/$format" >"$T/diff" || fail "$name under TSan: $format: $(head -c 1000 "$T/diff")"
	done
done
echo "no races"
