# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that take snapshots at seeded random moments of programs that go on; they
# source it after common.sh. N is the number of moments of each series, SEED what they are drawn from.
SEED=${SEED:-7}
RANDOM=$SEED

# ask NAME...: a snapshot, or several at once. $T/NAME is one, $T/NAME.asked when that was.
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

# wraps NAME: how often the rings of the first $cpus CPUs had wrapped; the least of them.
wraps() {
	awk -F '[.=]' -v ring="$ring" -v cpus="$cpus" '/^cpu\..*\.head=/ { head[$2] = $4 }
		END { for (i = 0; i < cpus; i++) if (i == 0 || head[i] < min) min = head[i] + 0; print int(min / ring) }' \
		"$T/$1/manifest"
}

# warm_up: until the rings have wrapped ten times.
warm_up() {
	for _ in {1..120}; do
		sleep 0.5
		ask early || fail "a snapshot while it warms up"
		[[ $(wraps early) -lt 10 ]] || break
		rm -rf "$T"/early*
	done
	[[ -e $T/early ]] || fail "the rings do not wrap ten times"
	rm -rf "$T"/early*
}

# check_moment NAME: it decodes to pieces of what was logged, and was taken when the rings had wrapped
# ten times. Counts in n_flushed those that show whether it goes up to the request.
check_moment() {
	local n
	"$O/tools/pieces" -r "$(cat "$T/$1.asked")" "$T/$1" "$T/live.log" >"$T/pieces" ||
		{ cat "$T/pieces"; fail "snapshot $1"; }
	n=$(wraps "$1")
	echo "snapshot $1: $(tail -1 "$T/pieces"), wrapped $n times"
	[[ $n -ge 10 ]] || fail "the rings had not wrapped ten times: $(grep head= "$T/$1/manifest")"
	! grep -q flushed "$T/pieces" || n_flushed=$((n_flushed + 1))
}

# live N CMD...: N moments of a program that runs until its standard input ends. Its output is what
# it is without us.
live() {
	local n=$1 names=() i name
	shift
	mkfifo "$T/tell"
	record live "$@" <"$T/tell" &
	recording=$!
	exec 7>"$T/tell"
	warm_up
	for ((i = 0; i < n; i++)); do
		printf s >&7
		sleep "0.$((RANDOM % 900 + 100))"
		case $((i % 3)) in
		0) names+=("$i" "$i+") && ask "$i" "$i+" ;;
		*) names+=("$i") && ask "$i" ;;
		esac || fail "snapshot $i"
	done
	exec 7>&-
	wait "$recording" || fail "the program: exit status $?"
	"$@" </dev/null | cmp - "$T/live.out" || fail "its output is another: $(cat "$T/live.out")"
	for name in "${names[@]}"; do
		check_moment "$name"
	done
	drop live
	rm -rf "$T/tell" "$T"/[0-9]*
}

# moments MAX CPUS RING CONFIG CMD...: N moments, no more than MAX of one run of the program, since
# what it logs grows. The first CPUS of four CPUs have enough to do for their rings, of RING KiB, to
# wrap. CONFIG is more of ptd's configuration. Whether a list goes up to the request shows only on a
# CPU that was busy then, and answered in time: if by bad luck none was, there are more moments.
moments() {
	local max=$1 cpus=$2 ring=$(($3 * 1024)) config=$4 left=$N n n_flushed=0 more=10
	shift 4
	while [[ $left -gt 0 || $n_flushed -eq 0 ]]; do
		[[ $left -gt 0 || $more -gt 0 ]] || fail "no CPU was busy at any of the moments"
		[[ $left -gt 0 ]] || more=$((more - 1))
		n=$((left < 1 ? 1 : left < max ? left : max))
		# shellcheck disable=SC2086 # several lines
		start_ptd "AuxSize=$ring" $config
		live "$n" "$@"
		left=$((left - n))
	done
}
