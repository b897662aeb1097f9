#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each export of recorded programs, read by the real reader of its format: Perfetto's trace processor, speedscope's
# importer, Go's pprof, callgrind_annotate, llvm-xray, the scripts of the HTML report, and a reader of ovni's streams, with
# ovni's emulator where PTD_OVNI names it (see long-ovni.sh). None of them complains, and what they make of the export is
# what calls --json says: each slice or call with its time, and the costs of each stack or function. A table says how many.
# Then the memory that each export takes, and calls and functions: it does not depend on the number of calls.
#
# ONLY names the programs to be taken, "rounds" for the memory; CALLS is how many calls a program has at most (some
# 200,000), ROUNDS how many rounds of 10 calls each of two threads has, of which the memory is measured.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
. tests/integration/lib/npm.sh
. tests/integration/lib/ovni.sh
. tests/integration/lib/xray.sh
need_large
need python3 node npm callgrind_annotate go llvm-xray
calls_max=${CALLS:-200000}
ROUNDS=${ROUNDS:-500000}

wanted() {
	[[ -z ${ONLY:-} || " $ONLY " == *" $1 "* ]] && installed "$2"
}

# said NAME FORMAT: print a row of the table, with what $T/said has.
said() {
	printf '%-10s %-20s %s\n' "$1" "$2" "$(sed 's/^[a-z_]*: //' "$T/said" | tail -n 1 | cut -c1-230)"
}

# checked NAME FORMAT FILE COMMAND...
checked() {
	local name=$1 format=$2
	python3 tests/tools/exported.py "$T/$name.rows" "$format" "${@:3}" >"$T/said" 2>"$T/said.err" ||
		{ tail -n 3 "$T/said.err" | cut -c1-600; fail "$name: $format"; }
	said "$name" "$format"
}

# streams NAME: judge the streams of ovni.
streams() {
	for version in 1 3; do
		tests/tools/ovni.py $version "$T/$1.v$version" "$T/$1.rows" >"$T/read.$version" || fail "$1: ovni, version $version"
		cp "$T/read.$version" "$T/said"
		said "$1" "ovni $version"
	done
	cat "$T"/read.[13] >"$T/read"
	mv "$T/$1.rows" "$T/$1.calls"
	[[ ! -x ${PTD_OVNI:-}/ovniemu ]] || emulate "$1"
}

# written NAME OPTION...: ptdecode writes what the options say; gaps are no failure.
written() {
	"$T/decode" "${@:2}" "$T/$1" 2>"$T/err"
	[[ $? == [03] ]] || { cat "$T/err"; fail "$1: ptdecode"; }
}

# exports NAME: the exports of the recording, of the last instructions that have calls_max calls or fewer.
exports() {
	local name=$1 last=20000000 n
	while true; do
		"$O/ptdecode" --last $last functions --json -o "$T/$name.functions" "$T/$name" 2>"$T/err"
		[[ $? == [03] ]] || { cat "$T/err"; fail "$name: ptdecode"; }
		n=$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["calls"])' "$T/$name.functions")
		((n > calls_max)) || break
		last=$((last * calls_max / n * 9 / 10))
	done
	printf '#!/bin/sh\nexec "%s" --last %s "$@"\n' "$O/ptdecode" $last >"$T/decode"
	chmod +x "$T/decode"
	# One run writes eight formats at most.
	written "$name" calls --json -o "$T/$name.rows" --also "export fxt -o $T/$name.fxt" --also "export chrome -o $T/$name.json" \
		--also "export pprof -o $T/$name.pprof" \
		--also "export collapsed -o $T/$name.collapsedstack.txt" --also "export callgrind -o $T/$name.callgrind"
	written "$name" html -o "$T/$name.html" --also "export xray -o $T/$name.xray" --also "export ovni -o $T/$name.v3" \
		--also "export ovni --format-version=1 -o $T/$name.v1"
	checked "$name" fxt "$T/$name.fxt" "${perfetto[@]}"
	checked "$name" chrome "$T/$name.json" "${perfetto[@]}"
	checked "$name" speedscope_collapsed "$T/$name.collapsedstack.txt" "${speedscope[@]}"
	checked "$name" speedscope_pprof "$T/$name.pprof" "${speedscope[@]}"
	checked "$name" pprof_go "$T/$name.pprof"
	checked "$name" callgrind "$T/$name.callgrind"
	checked "$name" html "$T/$name.html" "$T/$name.functions" "$T/$name" "$T/decode" node tests/tools/report.mjs
	judge_xray "$T/$name.xray" "$T/$name.rows" "$T/$name.functions" >"$T/said" || exit 1
	said "$name" xray
	streams "$name"
	drop "$name"
}

# measured VERB ROUNDS: the memory that the verb takes, in KiB, and the user CPU time.
measured() {
	local TIMEFORMAT=%U out=/dev/null
	[[ $1 != *@(ovni|xray) ]] || out=$T/out
	{ time "$O/tools/peak" "$O/ptdecode" --threads 1 $1 -o $out "$T/rounds$2" 2>"$T/err"; } 2>"$T/user" ||
		fail "$1: $(cat "$T/err")"
	rm -rf "$T/out"
	echo "$(tail -n 1 "$T/err") $(cat "$T/user")"
}

memory() {
	local n format small big seconds
	for n in $((ROUNDS / 4)) "$ROUNDS"; do
		record --timing rounds$n "$O/targets/rounds.c" $n
	done
	for format in calls functions html "export "{fxt,chrome,collapsed,callgrind,pprof,xray,ovni}; do
		read -r small _ < <(measured "$format" $((ROUNDS / 4)))
		read -r big seconds < <(measured "$format" "$ROUNDS")
		[[ -n $big ]] || exit 1
		echo "rounds     $format: $((ROUNDS * 20)) calls in $seconds s, $big KiB; a fourth of them $small KiB"
		((big * 10 < small * 11 + 20480)) || fail "the memory of $format grows with the calls: $small, then $big KiB"
	done
}

[[ ${ONLY:-} == rounds ]] || { fetch_speedscope && fetch_perfetto; }
start_ptd
! wanted rounds ls || memory
for name in ls threads signals calltruth throw perl gcc python3; do
	wanted $name ls || continue
	case $name in
	ls) record $name ls -l /usr ;;
	threads) record $name "$O/targets/relay.c" /bin/true ;;
	signals) record $name "$O/targets/signals.c" ;;
	calltruth) record $name "$O/targets/calltruth.c" "$T/calls" ;;
	throw) record $name "$O/targets/calltruth-throw.cc" "$T/calls" ;;
	perl)
		installed perl && record $name perl -e 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) }
			eval { die "x" }; print f(5); local $_ = "abcabc"; s/(b)/<$1>/g; print'
		;;
	gcc) touch "$T"/{a,b,c}.cc && record $name g++ -### -O2 "$T"/{a,b,c}.cc -o "$T/none" ;;
	# In some places the name is that of a shell script.
	python3) record $name /usr/bin/python3 -I -S -c 'print(sum(i * i % 7 for i in range(10000)))' ;;
	esac
	[[ ! -e $T/$name ]] || exports $name
done
if wanted ocaml ocamlopt; then
	printf '#include <caml/callback.h>\n#include <caml/mlvalues.h>\nvalue call_back(value f, value n)\n{\n\treturn %s;\n}\n' \
		'caml_callback(f, n)' >"$T/stubs.c"
	cp tests/targets/calltruth.ml "$T/truth.ml"
	(cd "$T" && ocamlopt -inline 0 -o ocaml.program stubs.c truth.ml) || fail "ocamlopt"
	# What is called like the recording is removed with it.
	mv "$T/ocaml.program" "$T/program-ocaml"
	record ocaml "$T/program-ocaml" "$T/calls"
	exports ocaml
fi
if wanted go go; then
	HOME=$T go build -o "$T/program-go" tests/targets/calltruth.go || fail "go"
	GOMAXPROCS=1 GOGC=off record go "$T/program-go" "$T/calls"
	exports go
fi
if wanted node node; then
	record_jit node env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof --interpreted-frames-native-stack \
		"$PWD/tests/targets/calltruth.js" "$T/calls" calm 20
	exports node
fi
exit 0
