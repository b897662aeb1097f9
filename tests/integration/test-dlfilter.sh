#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What perf decodes becomes the same calls, through the dlfilter, as what ptdecode decodes; and of plain C
# the tree that perf script --call-trace shows.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/dlfilter.sh
need qemu-x86_64 "${CC:-cc}"

# Perf's own header, where it is installed, has each member that we use where we have it; that of perf 6.1 has two fewer.
header=/usr/include/perf/perf_dlfilter.h
if [[ -e $header ]]; then
	{
		echo 'int printf(const char *, ...); int main(void) {'
		awk '/^struct perf_dlfilter_[a-z]+ \{/ { of = $2 }
			/^}/ { if (of == "perf_dlfilter_al" || of == "perf_dlfilter_fns")
				printf "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", of, of
				of = "" }
			of && $1 != "struct" || of && /\(\*/ {
				member = $0
				sub(/;.*/, "", member)
				if (member ~ /\(\*/) { sub(/.*\(\*/, "", member); sub(/[\[)].*/, "", member) }
				else sub(/.*[ *]/, "", member)
				printf "printf(\"%s.%s %%zu\\n\", __builtin_offsetof(struct %s, %s));\n", of, member, of, member
			}
			/^\tPERF_DLFILTER_FLAG_/ { printf "printf(\"%s %%d\\n\", (int)%s);\n", $1, $1 }
		' decoder/dlfilter/perfapi.h
		echo '}'
	} >"$T/members"
	grep -q al_cleanup "$header" || sed -i '/priv\|al_cleanup\|reserved\|sizeof/d' "$T/members"
	for of in "$header" "$PWD/decoder/dlfilter/perfapi.h"; do
		{ printf '#include "%s"\n' "$of"; cat "$T/members"; } >"$T/members.c"
		"${CC:-cc}" -o "$T/members.bin" "$T/members.c" && "$T/members.bin" || fail "$of"
	done >"$T/offsets"
	n=$(($(wc -l <"$T/offsets") / 2))
	[[ $n -gt 40 ]] || fail "$n members only"
	cmp <(head -n $n "$T/offsets") <(tail -n $n "$T/offsets") || fail "the members are not perf's"
	echo "$n members, sizes and flags as in $header"
fi

# calls_of FILE: the calls of each thread, in their order, without times, which perf guesses otherwise.
calls_of() {
	sed -nE 's/"stack": [0-9]+, //; s/"t": .*"instructions"/"instructions"/; s/\},?$//
		/^  \{"pid"/p' "$1" | sort -s -k4,4
}

"${CC:-cc}" -O0 -g -o "$T/plain-O0" tests/targets/plain.c || fail "plain.c"
start_ptd
for name in plain ls signals relay; do
	case $name in
	plain) record plain "$T/plain-O0" ;;
	ls) record ls ls -l /usr ;;
	relay) record relay "$O/targets/relay.c" /bin/true ;;
	*) record signals "$O/targets/signals.c" ;;
	esac
	filter "$T/$name" "calls --json -o $T/by-perf" "summary -o $T/summary" >"$T/said" 2>&1 ||
		{ cat "$T/said"; fail "$name: status $?"; }
	[[ ! -s $T/said ]] || { cat "$T/said"; fail "$name: perf says something"; }
	"$O/ptdecode" calls --json -o "$T/by-us" "$T/$name" || fail "ptdecode: status $?"
	calls_of "$T/by-perf" >"$T/by-perf.calls"
	calls_of "$T/by-us" >"$T/by-us.calls"
	n=$(wc -l <"$T/by-us.calls")
	diff "$T/by-perf.calls" "$T/by-us.calls" >"$T/diff" || { head "$T/diff"; fail "$name: other calls"; }
	[[ $n -gt 900 ]] || fail "$name: $n calls"
	grep -q '^Gaps: 0$' "$T/summary" || fail "$name: gaps"
	echo "$name: $n calls as ptdecode has them"
done

# Perf's own tree: the functions of the program, and how deep they are.
functions='^(main|leaf|odd|even|fibonacci)$'
perf script -i "$T/plain" --call-trace -F callindent 2>"$T/perf.err" | expand |
	awk -v f="$functions" '$NF ~ f { match($0, /[^ ]/); print (RSTART - 1) / 4 - first, $NF }' >"$T/tree.perf"
filter "$T/plain" calls | awk -v f="$functions" '
	/^#/ || /\} \/\// { next }
	match($0, /[a-z_A-Z]+(\(\)| \[| \{)/) {
		name = substr($0, RSTART, RLENGTH)
		sub(/[^a-z_A-Z].*/, "", name)
		before = substr($0, 1, RSTART - 1)
		if (name ~ f) print length(before), name
	}' >"$T/tree.ours"
relative() { awk 'NR == 1 { first = $1; } { print ($1 - first) / unit, $2 }' unit="$2" "$1"; }
diff <(relative "$T/tree.perf" 1) <(relative "$T/tree.ours" 2) >"$T/diff" || { head "$T/diff"; fail "perf's tree is another one"; }
n=$(wc -l <"$T/tree.ours")
[[ $n -gt 1000 ]] || fail "$n calls of the program"
echo "plain: $n calls as perf script --call-trace has them"

# --inlines is more than --lines, whichever comes last, as for ptdecode.
"${CC:-cc}" -O2 -g -o "$T/lines-O2" tests/targets/lines.c || fail "lines.c"
record inlined "$T/lines-O2"
for option in "--lines --inlines" "--inlines --lines" --inlines --lines; do
	filter "$T/inlined" "text $option -o $T/${option// /}" || fail "$option: status $?"
done
cmp "$T/--inlines--lines" "$T/--inlines" && cmp "$T/--lines--inlines" "$T/--inlines" || fail "--lines beside --inlines"
cmp -s "$T/--lines" "$T/--inlines" && fail "lines.c has no function that was inlined"

# Every output can be asked for; what is refused, is refused before anything is written.
filter "$T/plain" "export drmemtrace -o $T/memtrace" && "$O/tools/memtrace-check" "$T/memtrace" || fail "drmemtrace"
refused() { # TEXT OPTION...
	local text=$1
	shift
	filter "$T/plain" "$@" >"$T/said" 2>&1 && fail "$*: not refused"
	grep -qF -- "$text" "$T/said" || { cat "$T/said"; fail "$*: not '$text'"; }
}
before=$(sha256sum <"$T/plain/data")
refused 'no such verb: "nonsense"' nonsense
refused 'there is no -f: the verb is "calls"' -fcalls
refused 'one -o too many: "y"' 'calls -o x -o y'
refused '--dlarg is missing: expected a verb of ptdecode'
refused 'this is no option of the output: "more"' 'calls more'
refused 'this is no option of one output: "--cpu=1"' 'calls --cpu=1'
refused 'the verb has no other beside it: "diff"' diff
refused "$T/plain/data: will not be written: perf reads it" "calls -o $T/plain/data"
refused '-o must name a directory for the format: "drmemtrace"' 'export drmemtrace'
[[ $before == "$(sha256sum <"$T/plain/data")" ]] || fail "the recording was changed"
perf script -i "$T/plain" --itrace=i1us --dlfilter "$O/libptd-dlfilter.so" --dlarg summary 2>&1 |
	grep -q 'perf decoded no branches: --itrace=b asks for them' || fail "no word on --itrace"
