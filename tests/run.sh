#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Run every test of the build in $1: units, fuzz corpora, golden cases, integration scripts; as many at once as
# there are CPUs. What a test prints is kept in $1/log/NAME.log; its result is one line, below which stand the
# summaries of cmocka, if it uses it. What failed is printed at the end. A script that has a line "# Alone: why"
# runs while nothing else does. A test that exits 77 was skipped and has said why. Long tests (tests/*/long-*) run
# with PTD_LONG=1; under PTD_ASAN=1 the sanitized programs are tested, with the plugin of the plain build, and not
# in the guest (tests/guest). PTD_UNITS=1 leaves all scripts out. PTD_JOBS=N runs up to N at once. A test that does
# not end in 20 minutes, sanitized in an hour, hangs: it fails then, unless long tests run.
#
# A second argument is a pattern: only tests whose name matches it run.
set -u
O=$1
only=${2:-}
export O
PTD_EMU_SO=$(realpath "${PTD_EMU_SO:-$O/ptd-emu.so}")
export PTD_EMU_SO
jobs_max=${PTD_JOBS:-$(nproc)}
hung_s=${PTD_LONG:+0} # 0: no limit
hung_s=${hung_s:-${PTD_ASAN:+3600}}
hung_s=${hung_s:-1200}
passed=0 failed=0 skipped=0 failures=()
declare -A name_of=() start_of=() # by the pid of what runs
logs=$O/log
mkdir -p "$logs" || exit

# Wait for one test to end, print its result, and count it.
reap() {
	local pid name status log seconds why
	wait -n -p pid "${!name_of[@]}"
	status=$?
	name=${name_of[$pid]} log=$logs/${name_of[$pid]}.log seconds=$((SECONDS - start_of[$pid]))
	unset "name_of[$pid]" "start_of[$pid]"
	case $status in
	0) passed=$((passed + 1)) && echo "ok       $name  ($seconds s)" ;;
	77) skipped=$((skipped + 1)) && why=$(sed -n 's/^SKIP: //p' "$log") && echo "skipped  $name: $why" ;;
	*) failed=$((failed + 1)) failures+=("$name") && echo "FAILED   $name  ($seconds s, exit status $status): $log" ;;
	esac
	grep -aE '^\[  (PASSED |FAILED |SKIPPED) \] [0-9]+ test' "$log"
}

# at_most N: wait until no more than N tests run.
at_most() {
	while [[ ${#name_of[@]} -gt $1 ]]; do
		reap
	done
}

# run NAME CMD...
run() {
	local name=$1
	shift
	[[ -z $only || $name == *$only* ]] || return
	at_most $((jobs_max - 1))
	timeout -k 60 "$hung_s" "$@" </dev/null >"$logs/$name.log" 2>&1 &
	name_of[$!]=$name start_of[$!]=$SECONDS
}

# scripts PREFIX PATTERN: the scripts of that pattern, under their names behind the prefix.
scripts() {
	local t alone
	for t in $2; do
		alone=$(grep -c '^# Alone: ' "$t")
		[[ $alone -eq 0 ]] || at_most 0
		run "$1$(basename "$t" .sh)" "$t"
		[[ $alone -eq 0 ]] || at_most 0
	done
}

# Rows that make every call fail run beside the others, and first, since some take longest (tests/lib/failing.h).
slow=$(grep -lE 'cmocka_unit_test[a-z_]*\(calls_that_fail' tests/unit/test-*.c)
for t in $slow; do
	name=$(basename "$t" .c)
	run "$name-failing" env PTD_FAILING=only "$O/$name"
done
for t in tests/unit/test-*.c; do
	name=$(basename "$t" .c)
	if [[ $slow == *"$t"* ]]; then
		run "$name" env PTD_FAILING=not "$O/$name"
	else
		run "$name" "$O/$name"
	fi
done
for t in tests/fuzz/fuzz-*.c; do
	name=$(basename "$t" .c)
	run "corpus-${name#fuzz-}" "$O/replay-${name#fuzz-}" "tests/fuzz/corpus/${name#fuzz-}"/*
done
run golden "$O/tools/golden" tests/golden/*.case
run timed "$O/tools/timed" -n "${N_TIMED:-300}"
if [[ -z ${PTD_UNITS:-} ]]; then
	scripts "" "tests/integration/test-*.sh"
fi
if [[ -z ${PTD_UNITS:-}${PTD_ASAN:-} ]]; then
	scripts guest- "tests/guest/test-*.sh"
fi
if [[ -n ${PTD_LONG:-} ]]; then
	scripts "" "tests/integration/long-*.sh"
	scripts guest- "tests/guest/long-*.sh"
fi
at_most 0

for name in ${failures[@]+"${failures[@]}"}; do
	echo "=== $name failed: $logs/$name.log"
	tail -n 200 "$logs/$name.log"
done
[[ $failed -eq 0 ]] || echo "failed: ${failures[*]}"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $passed -gt 0 ]]
