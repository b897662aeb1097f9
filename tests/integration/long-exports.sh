#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each export of recorded programs, read by the real reader of its format: callgrind_annotate, Go's pprof, speedscope's
# importer and Perfetto's trace processor. None of them complains, and what they make of the export is what
# -f calls:json says: each slice or call with its time, and the costs of each stack or function. A table says how many.
# ONLY names the programs to be taken; CALLS is how many calls a program has at most (some 200,000).
. "$(dirname "$0")/common.sh"
. tests/integration/jit.sh
. tests/integration/npm.sh
need_large
need python3 node npm callgrind_annotate go
calls_max=${CALLS:-200000}

fetch_speedscope
fetch_perfetto

wanted() {
	[[ -z ${ONLY:-} || " $ONLY " == *" $1 "* ]] && installed "$2"
}

# checked NAME FORMAT FILE COMMAND...: one cell of the table.
checked() {
	local name=$1 format=$2
	python3 tests/tools/exported.py "$T/$name.rows" "$format" "${@:3}" >"$T/said" 2>"$T/said.err" ||
		{ tail -n 3 "$T/said.err" | cut -c1-600; fail "$name: $format"; }
	printf '%-10s %-20s %s\n' "$name" "$format" "$(sed 's/^[a-z_]*: //' "$T/said" | cut -c1-230)"
}

# exports NAME: the exports of the recording, of the last instructions that have calls_max calls or fewer.
exports() {
	local name=$1 last=20000000 n
	while true; do
		"$O/ptdecode" --last $last -f functions:json -o "$T/$name.functions" "$T/$name" 2>"$T/err"
		[[ $? == [03] ]] || { cat "$T/err"; fail "$name: ptdecode"; }
		n=$(python3 -c 'import json, sys
print(sum(f["calls"] for f in json.load(open(sys.argv[1]))["functions"]))' "$T/$name.functions")
		((n > calls_max)) || break
		last=$((last / 2))
	done
	"$O/ptdecode" --last $last -f calls:json -o "$T/$name.rows" -f fxt -o "$T/$name.fxt" -f chrome -o "$T/$name.json" \
		-f speedscope -o "$T/$name.speedscope.json" -f pprof -o "$T/$name.pprof" \
		-f collapsed -o "$T/$name.collapsedstack.txt" -f callgrind -o "$T/$name.callgrind" "$T/$name" 2>"$T/err"
	[[ $? == [03] ]] || { cat "$T/err"; fail "$name: ptdecode"; }
	checked "$name" fxt "$T/$name.fxt" "${perfetto[@]}"
	checked "$name" chrome "$T/$name.json" "${perfetto[@]}"
	checked "$name" speedscope "$T/$name.speedscope.json" "${speedscope[@]}"
	checked "$name" speedscope_collapsed "$T/$name.collapsedstack.txt" "${speedscope[@]}"
	checked "$name" speedscope_pprof "$T/$name.pprof" "${speedscope[@]}"
	checked "$name" pprof_go "$T/$name.pprof"
	checked "$name" callgrind "$T/$name.callgrind"
	drop "$name"
}

start_ptd
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
			eval { die "x" }; print f(5); local $_ = "abcabc"; s/(b)/<$1>/g; print' ;;
	gcc) touch "$T"/{a,b,c}.cc && record $name g++ -### -O2 "$T"/{a,b,c}.cc -o "$T/none" ;;
	python3) record $name python3 -I -S -c 'print(sum(i * i % 7 for i in range(10000)))' ;;
	esac
	[[ ! -e $T/$name ]] || exports $name
done
if wanted ocaml ocamlopt; then
	printf '#include <caml/callback.h>\n#include <caml/mlvalues.h>\nvalue call_back(value f, value n)\n{\n\treturn %s;\n}\n' \
		'caml_callback(f, n)' >"$T/stubs.c"
	cp tests/targets/calltruth.ml "$T/truth.ml"
	(cd "$T" && ocamlopt -inline 0 -o ocaml.program stubs.c truth.ml) || fail "ocamlopt"
	record ocaml "$T/ocaml.program" "$T/calls"
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
