#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Snapshots at seeded random moments of a program that goes on, from rings that wrapped many times:
# each decodes to pieces of what the threads did, nothing is missing between them, and they go up to
# the request. Two are asked for at once. The program's output is what it is without us.
. "$(dirname "$0")/common.sh"
need qemu-x86_64 python3
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"

N=${N:-5}
RANDOM=${SEED:-7}
echo "seed ${SEED:-7}, $N moments"

# Asks for a snapshot, or several at once, and notes when: $T/ID is one, $T/ID.asked the time.
ask() {
	python3 - "$O/ptctl" "$T" "$@" <<-'END'
		import subprocess, sys, time
		ptctl, directory, *names = sys.argv[1:]
		asked = time.monotonic_ns()
		jobs = [subprocess.Popen([ptctl, "snapshot", "-o", f"{directory}/{name}"],
		        stdout=subprocess.DEVNULL) for name in names]
		for name, job in zip(names, jobs):
		    if job.wait() != 0: sys.exit(f"{name}: exit status {job.returncode}")
		    open(f"{directory}/{name}.asked", "w").write(str(asked))
	END
}

live() {
	start_ptd AuxSize=256K "$@"
	mkfifo "$T/tell"
	record live "$O/targets/live.c" <"$T/tell" &
	recording=$!
	exec 7>"$T/tell"
	sleep 3
	names=()
	n_flushed=0
	for ((i = 0; i < N; i++)); do
		printf s >&7
		sleep "0.$((RANDOM % 900 + 100))"
		case $((i % 3)) in
		0) names+=("$i" "$i+") && ask "$i" "$i+" ;;
		*) names+=("$i") && ask "$i" ;;
		esac || fail "snapshot $i"
	done
	exec 7>&-
	wait "$recording" || fail "the program: exit status $?"
	"$O/targets/live.c" </dev/null | cmp - "$T/live.out" || fail "its output is another: $(cat "$T/live.out")"

	for name in "${names[@]}"; do
		"$O/tools/pieces" -r "$(cat "$T/$name.asked")" "$T/$name" "$T/live.log" >"$T/pieces" ||
			{ cat "$T/pieces"; fail "snapshot $name"; }
		grep -q flushed "$T/pieces" && n_flushed=$((n_flushed + 1))
		echo "snapshot $name: $(tail -1 "$T/pieces")"
		# It was asked for when the rings of the busy CPUs had wrapped.
		awk -F= '/head=/ && $2 > m { m = $2 } END { exit m < 10 * 256 * 1024 }' "$T/$name/manifest" ||
			fail "the rings had not wrapped ten times: $(grep head= "$T/$name/manifest")"
	done
	drop live
	rm -rf "$T/tell" "$T"/[0-9]*
	[[ $n_flushed -gt 0 ]]
}

# Whether a list goes up to the request shows only on a CPU that was busy then: by bad luck none was.
busy_live() {
	for _ in 1 2 3; do
		live "$@" && return
		echo "no CPU was busy at any of the moments: once more"
	done
	fail "no CPU was busy at any of the moments, three times over"
}

busy_live SwitchSize=16M
echo "--- with switches that wrap before the PT"
busy_live SwitchSize=8K SidebandMax=1M
