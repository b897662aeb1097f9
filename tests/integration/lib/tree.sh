# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the tests of process trees share; they source it after common.sh.

# tree NAME STATUS KILLED CMD...: run it natively and recorded. Output and exit status must be the same;
# what is decoded must be what was logged, for every process and thread, by both engines; KILLED of
# them were killed.
tree() {
	local name=$1 status=$2 killed=$3 got
	shift 3
	"$@" >"$T/native" 2>"$T/native.err"
	got=$?
	[[ $got == "$status" ]] || fail "$name: exits with $got natively, not with $status"

	start_ptd
	mkdir "$T/$name.log"
	PTD_EMU_LOG=$T/$name.log "$O/ptctl" record -o "$T/$name" -- "$@" >"$T/$name.out" 2>"$T/$name.err"
	got=$?
	[[ $got == "$status" ]] || { cat "$T/$name.err"; fail "$name: exits with $got, not with $status"; }
	cmp "$T/native" "$T/$name.out" || fail "$name: its output is not its own"
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/$name" "$T/$name.log" >"$T/exact" ||
			{ cat "$T/exact"; fail "$name, $engine"; }
		grep -q " $killed killed\$" "$T/exact" || { cat "$T/exact"; fail "$name: not $killed killed"; }
		# Where a process died with a CPU, packets are missing.
		[[ $killed != 0 ]] || ! grep '^gap:' "$T/exact" || fail "$name: gaps"
	done
	echo "$name: $(tail -1 "$T/exact")"
	recorded "$name"
	n_threads=$(grep -cE "^[0-9]+\.[0-9]+: " "$T/exact")
}

# threads N: the last tree had so many threads in all.
threads() {
	[[ $n_threads == "$1" ]] || fail "$n_threads threads were followed, not $1"
}
