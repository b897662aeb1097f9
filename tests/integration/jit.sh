# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that record JIT compilers; they source it after common.sh.

# record_jit NAME CMD...: as record, in a recorder of its own. What the snapshot, taken when the
# program had ended, does not have is added: jitdumps that the command leaves in $T/dumps or /tmp, and
# what it says that its memory held.
record_jit() {
	local name=$1 pid file
	shift
	start_ptd
	rm -rf "$T/dumps"
	mkdir "$T/dumps"
	record "$name" "$@"
	stop_ptd
	mkdir -p "$T/$name/jit" "$T/$name/mem"
	for pid in $(ls "$T/$name.log" | sed -n 's/^\([0-9]*\)\..*/\1/p' | sort -u); do
		for file in {"$T/dumps",/tmp}/jit-"$pid".dump /tmp/perf-"$pid".map; do
			keep_file "$file" "$T/$name/jit"
		done
		for file in "$T/dumps/$pid"-*; do
			keep_file "$file" "$T/$name/mem"
		done
	done
}

# keep_file FILE DIR: into the directory, unless it is there already.
keep_file() {
	[[ ! -e $1 ]] || { [[ -e $2/$(basename "$1") ]] && rm "$1"; } || mv "$1" "$2/"
}

# check_jit NAME: decoded = log, and the names are those of the jitdump; $T/names has the figures.
check_jit() {
	local name=$1
	for engine in block insn; do
		"$O/tools/exact" -f -e $engine "$T/$name" "$T/$name.log" >"$T/exact" || {
			grep -vE 'instructions, [0-9]+ unreported, [0-9]+ cpus$' "$T/exact" | tail -n 9
			fail "$name, $engine"
		}
		echo "$name $engine: $(tail -n 1 "$T/exact")"
		check_names "$name" $engine
	done
}

# check_names NAME ENGINE: those of what could be decoded.
check_names() {
	"$O/tools/jit-names" -e "$2" "$T/$1" >"$T/names" || { cat "$T/names"; fail "$1, $2: names"; }
	echo "$1 $2: $(tail -n 1 "$T/names")"
}

installed() {
	command -v "$1" >/dev/null || { echo "$1 is not installed: left out" && false; }
}

# run_node SCRIPT
run_node() {
	installed node || return 0
	echo "$1" >"$T/script.js"
	# Certificates, read at the start, would be most of what runs.
	record_jit node env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof "$T/script.js"
	check_jit node
	"$O/ptdecode" --force -f summary "$T/node" | head -3
	drop node
}

# run_php CODE
run_php() {
	installed php || return 0
	echo "<?php $1" >"$T/script.php"
	# Its other mode, tracing, patches jumps in code that it has noted, and does not note that.
	# The cache does not take files that are younger than two seconds.
	touch -d '1 hour ago' "$T/script.php"
	record_jit php php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=function \
		-d opcache.jit_debug=32 "$T/script.php"
	check_jit php
	drop php
}

# run_erlang N: the Nth Fibonacci number
run_erlang() {
	local root
	installed erl || return 0
	export ERL_CRASH_DUMP=$T/erl_crash.dump
	cat >"$T/f.erl" <<-'EOT'
		-module(f).
		-export([fib/1, main/1]).
		fib(N) when N < 2 -> N;
		fib(N) -> fib(N - 1) + fib(N - 2).
		main([N]) -> io:format("~p~n", [fib(list_to_integer(N))]), halt(0).
	EOT
	(cd "$T" && erlc f.erl) || fail "erlc"
	root=$(erl -noshell -eval 'io:format("~s", [code:root_dir()]), halt().')
	# Without the shell scripts around it, and without schedulers that wait busily.
	record_jit erlang env -C "$T" ROOTDIR="$root" BINDIR="$(echo "$root"/erts-*/bin)" EMU=beam PROGNAME=erl \
		"$(echo "$root"/erts-*/bin)/beam.smp" -sbwt none -sbwtdcpu none -sbwtdio none -S 1:1 -SDcpu 1:1 -SDio 1 -A 1 -JPperf dump -- \
		-root "$root" -bindir "$(echo "$root"/erts-*/bin)" -progname erl -- -home "$T" -- -noshell -pa "$T" -run f main "$1"
	# It changes code that it has noted (stubs of native functions) and does not note that: where
	# such code runs there is a gap.
	check_names erlang block
	drop erlang
}
