# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that record code that is in no file; they source it after common.sh.
. tests/integration/lib/programs.sh

# ran NAME ENGINE MIN CMD...: records it to its end, and compares what was decoded with the log: there is
# no gap, and at least MIN instructions are of code that is in no file.
ran() {
	local name=$1 engine=$2 min=$3 n pid
	shift 3
	record "$name" "$@"
	"$O/tools/gapped" "$engine" "$T/$name" "$T/$name.log" >"$T/gapped" || { cat "$T/gapped"; fail "$name, $engine"; }
	"$O/ptdecode" summary "$T/$name" >"$T/summary" || { cat "$T/summary"; fail "$name: ptdecode: exit status $?"; }
	n=$(awk '/^Objects/ { objects = 1 } objects && $3 == "[anon]" { n += $1 } END { printf "%.0f", n }' "$T/summary")
	echo "$name $engine: $(tail -n 1 "$T/gapped"), ${n:-0} of [anon]"
	tail -n 1 "$T/gapped" | grep -q ', 0 gaps left out 0$' || fail "$name, $engine: gaps"
	for pid in $(ls "$T/$name.log" | sed -n 's/^\([0-9]*\)\..*/\1/p' | sort -u); do
		rm -f "/tmp/perf-$pid.map"
	done
	((${n:-0} >= min)) || fail "$name: ${n:-0} instructions of [anon], not $min"
	drop "$name"
}

# short NAME CMD...: records it where there is no room for all of its code: what was decoded is what was
# logged, and a gap says what was left out.
short() {
	local name=$1
	shift
	record "$name" "$@"
	"$O/tools/gapped" flow "$T/$name" "$T/$name.log" >"$T/gapped" || { cat "$T/gapped"; fail "$name, short of room"; }
	echo "$name, short of room: $(tail -n 1 "$T/gapped")"
	grep -q ' [1-9][0-9]* gaps' "$T/gapped" || fail "$name, short of room: no gap"
	drop "$name"
}
