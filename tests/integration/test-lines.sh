#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The source lines that --lines and --inlines show are those that addr2line says: each instruction that
# was executed in a program built with -O2 -g; then in the same program without its DWARF, which is in
# a debug file; then without the debug file.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 cc addr2line objcopy strip python3

# addresses TEXT: the addresses of the program in our text, each once, with what stands behind the object.
shown() {
	sed -nE "s|^.*: +([0-9a-f]+) .* \($T/bin/[a-z]+\)( (.*))?\$|\1 \3|p" "$1" | sort -u
}

# judge FILE ADDRESSES: the same of addr2line, whose lines "(inlined by)" follow the first. What it takes from
# the symbol table is left out.
judge() {
	cut -d' ' -f1 "$2" | addr2line -afipC -e "$1" | sed -E 's/ \(discriminator [0-9]+\)//; s/^0x0*([0-9a-f]+): /\1 /' |
		awk '/^ \(inlined by\) / { line = line $0; next } { if (line != "") print line; line = $0 } END { print line }' |
		sed -E 's/ [^ ]+ (at )?[^ \/]+:[?0]$/ /' | sort -u
}

# compare NAME OPTION...: against addr2line on $T/truth.
compare() {
	local name=$1
	shift
	"$O/ptdecode" text "$@" --inlines "$T/$name" >"$T/text" || fail "$name: exit status $?"
	shown "$T/text" >"$T/shown"
	judge "$T/truth" "$T/shown" >"$T/judged"
	[[ $(wc -l <"$T/shown") -gt 100 ]] || fail "$name: only $(wc -l <"$T/shown") instructions"
	grep -q '(inlined by)' "$T/shown" || fail "$name: nothing is inlined, nothing tested"
	# Code of functions that gcc found to be equal has lines, and no function in the DWARF: addr2line asks the symbols.
	awk 'NR == FNR { if ($0 !~ / at /) bare[$1]; next } $1 in bare { n += sub(/ .* at /, " ") } { print } END { exit n > 10 }' \
		"$T/shown" "$T/judged" >"$T/named" || fail "$name: many instructions have no function"
	mv "$T/named" "$T/judged"
	diff "$T/judged" "$T/shown" >"$T/diff" || { head -20 "$T/diff"; fail "$name $*: the lines are not addr2line's"; }
	# --lines shows the first place alone.
	"$O/ptdecode" text "$@" --lines "$T/$name" >"$T/text" || fail "$name: exit status $?"
	shown "$T/text" >"$T/shown-lines"
	sed -E 's/ \(inlined by\).*//; s/ .* at / /' "$T/judged" | sort -u >"$T/judged-lines"
	diff "$T/judged-lines" "$T/shown-lines" >"$T/diff" || { head -20 "$T/diff"; fail "$name $*: the lines of --lines differ"; }
	echo "$name $*: $(wc -l <"$T/shown") instructions, $(grep -c '(inlined by)' "$T/shown") of them inlined"
}

# functions NAME OPTION...: where functions begin, against addr2line, in the tree of calls.
functions() {
	local name=$1
	shift
	"$O/ptdecode" calls "$@" --lines --json -o "$T/json" --also "calls --lines -o $T/text" "$T/$name" || fail "$name: exit status $?"
	python3 - "$T/json" "$T/text" "$T/truth" "$T/bin/$name" <<-'END' || fail "$name $*: lines of functions"
	import json, subprocess, sys
	calls = [c for c in json.load(open(sys.argv[1]))["calls"] if c.get("object") == sys.argv[4]]
	places = {(c["function"], c["address"]): f"{c['file']}:{c['line']}" for c in calls if "file" in c}
	text, n_inlined = open(sys.argv[2]).read(), 0
	for (function, address), place in places.items():
	    said = subprocess.check_output(["addr2line", "-if", "-e", sys.argv[3], address], text=True).splitlines()
	    said = [(name, line.split()[0]) for name, line in zip(said[::2], said[1::2])]
	    inlined = function.endswith(" (inlined)")
	    assert (function.removesuffix(" (inlined)"), place) in said if inlined else said[-1][1] == place, (function, said, place)
	    n_inlined += inlined
	    assert f"// {place}" in text, (function, place)
	assert {"main", "sort", "sum"} <= {function.split(".")[0] for function, _ in places}, places
	assert n_inlined >= 3
	print(f"{len(places)} functions, {n_inlined} of them inlined")
	END
}

mkdir -p "$T/bin" "$T/debug"
check() {
	local name=$1
	shift
	"$@" -O2 -g -no-pie -pthread -o "$T/bin/$name" || fail "$name: cannot build"
	cp "$T/bin/$name" "$T/truth"
	start_ptd
	record "$name" "$T/bin/$name"
	compare "$name"
	functions "$name"

	objcopy --only-keep-debug --compress-debug-sections "$T/truth" "$T/debug/$name.debug" &&
		strip "$T/bin/$name" && objcopy --add-gnu-debuglink="$T/debug/$name.debug" "$T/bin/$name" || fail "objcopy"
	mkdir -p "$T/debug$T/bin"
	mv "$T/debug/$name.debug" "$T/debug$T/bin/"
	drop "$name"
	start_ptd
	record "$name" "$T/bin/$name"
	"$O/ptdecode" text --inlines "$T/$name" | grep -q "($T/bin/$name) ." && fail "$name: has lines without its debug file"
	compare "$name" --debug-dir "$T/debug"
	drop "$name"
}

check lines cc tests/targets/lines.c

# A program of others, optimized: 10,000 of its addresses and more.
if [[ -n ${REAL:-} ]]; then
	. tests/integration/lib/sqlite.sh
	cc -O2 -w -g -no-pie -I "$sqlite" -o "$T/bin/sqlite" "$sqlite/sqlite3.c" "$T/shell.c" -lm || fail "sqlite: cannot build"
	cp "$T/bin/sqlite" "$T/truth"
	start_ptd
	record sqlite "$T/bin/sqlite" "$T/script.sql"
	compare sqlite
	[[ $(wc -l <"$T/shown") -gt 10000 ]] || fail "sqlite: only $(wc -l <"$T/shown") instructions"
fi
