#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Run every test of the build in $1: units, fuzz corpora, golden cases, integration scripts. A test that exits 77
# was skipped and has said why. Long tests (tests/*/long-*) run with PTD_LONG=1; under
# PTD_ASAN=1 the sanitized programs are tested, with the plugin of the plain build, and not in the guest
# (tests/guest). PTD_UNITS=1 leaves all scripts out.
#
# A second argument is a pattern: only tests whose name matches it run.
set -u
O=$1
only=${2:-}
export O
export PTD_EMU_SO=${PTD_EMU_SO:-$O/ptd-emu.so}
passed=0 failed=0 skipped=0 failures=

run() {
	local name=$1 start=$SECONDS status
	shift
	[[ -z $only || $name == *$only* ]] || return
	echo "=== $name"
	"$@" </dev/null
	status=$?
	case $status in
	0) passed=$((passed + 1)) ;;
	77) skipped=$((skipped + 1)) && echo "--- $name: skipped" ;;
	*) failed=$((failed + 1)) failures+=" $name" && echo "--- $name: FAILED (exit status $status)" ;;
	esac
	echo "--- $name: $((SECONDS - start)) s"
}

for t in tests/unit/test-*.c; do
	name=$(basename "$t" .c)
	run "$name" "$O/$name"
done
for t in tests/fuzz/fuzz-*.c; do
	name=$(basename "$t" .c)
	run "corpus-${name#fuzz-}" "$O/replay-${name#fuzz-}" "tests/fuzz/corpus/${name#fuzz-}"/*
done
run golden "$O/tools/golden" tests/golden/*.case
if [[ -z ${PTD_UNITS:-} ]]; then
	for t in tests/integration/test-*.sh; do
		run "$(basename "$t" .sh)" "$t"
	done
fi
if [[ -z ${PTD_UNITS:-}${PTD_ASAN:-} ]]; then
	for t in tests/guest/test-*.sh; do
		run "guest-$(basename "$t" .sh)" "$t"
	done
fi
if [[ -n ${PTD_LONG:-} ]]; then
	for t in tests/integration/long-*.sh; do
		run "$(basename "$t" .sh)" "$t"
	done
	for t in tests/guest/long-*.sh; do
		run "guest-$(basename "$t" .sh)" "$t"
	done
fi

[[ -z $failures ]] || echo "failed:$failures"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $passed -gt 0 ]]
