# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that record JIT compilers; they source it after common.sh.
. tests/integration/lib/programs.sh

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

# record_alive NAME CMD...: records a program that says "ready" and then waits for the end of its
# input. The snapshot is taken meanwhile, so that it has the memory, too.
record_alive() {
	local name=$1 pid
	shift
	start_ptd
	mkdir "$T/$name.log"
	mkfifo "$T/hold"
	PTD_EMU_LOG=$T/$name.log "$O/ptctl" record -o "$T/$name.end" -- "$@" \
		<"$T/hold" >"$T/$name.out" 2>"$T/$name.err" &
	recording=$!
	exec 7>"$T/hold"
	until grep -q ready "$T/$name.out"; do
		kill -0 $recording 2>/dev/null || { cat "$T/$name.err"; fail "$name ended too early"; }
		sleep 0.1
	done
	"$O/ptctl" snapshot -o "$T/$name" >/dev/null || fail "$name: snapshot"
	exec 7>&-
	wait $recording || { cat "$T/$name.err"; fail "$name: exit status $?"; }
	stop_ptd
	rm "$T/hold"
	for pid in $(ls "$T/$name.log" | sed -n 's/^\([0-9]*\)\..*/\1/p' | sort -u); do
		rm -f "/tmp/jit-$pid.dump" "/tmp/perf-$pid.map"
	done
}

# keep_file FILE DIR: into the directory, unless it is there already.
keep_file() {
	[[ ! -e $1 ]] || { [[ -e $2/$(basename "$1") ]] && rm "$1"; } || mv "$1" "$2/"
}

# check_jit NAME: decoded = log, and the names are those of the jitdump, with each engine; $T/names.ENGINE
# has the figures.
check_jit() {
	each_engine check_exact "$1"
}

# check_exact NAME ENGINE: decoded = log, and the names are those of the jitdump.
check_exact() {
	"$O/tools/exact" -f -e "$2" "$T/$1" "$T/$1.log" >"$T/exact.$2" || {
		grep -vE 'instructions, [0-9]+ unreported, [0-9]+ cpus$' "$T/exact.$2" | tail -n 9
		fail "$1, $2"
	}
	echo "$1 $2: $(tail -n 1 "$T/exact.$2")"
	check_names "$1" "$2"
}

# check_names NAME ENGINE: those of what could be decoded. The time of code says which of several functions it is.
check_names() {
	[[ $2 == flow ]] || ! ipt_reads_ahead || return 0
	"$O/tools/jit-names" "$2" "$T/$1" >"$T/names.$2" || { cat "$T/names.$2"; fail "$1, $2: names"; }
	echo "$1 $2: $(tail -n 1 "$T/names.$2")"
}

# run_node SCRIPT [ENGINE]: by both engines, or that one.
run_node() {
	installed node || return 0
	echo "$1" >"$T/script.js"
	# Certificates, read at the start, would be most of what runs.
	record_jit node env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof "$T/script.js"
	if [[ ${2:-} ]]; then check_exact node "$2"; else check_jit node; fi
	"$O/tools/cuts" -q "$T/node" || fail "node: cuts"
	"$O/ptdecode" --force summary "$T/node" | head -3
	drop node
}

# run_php CODE: in both modes of its JIT. The default one, tracing, links the traces that it has noted
# to younger ones; where these links lead shows in the memory.
run_php() {
	local mode
	installed php || return 0
	write_php "$T/script.php" <<<"$1; echo \"ready\n\"; fgets(STDIN);"
	for mode in function tracing; do
		record_alive php php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
			-d opcache.jit=$mode -d opcache.jit_debug=32 "$T/script.php"
		each_engine check_php
		drop php
	done
}

# check_php ENGINE
check_php() {
	check_gapped php "$1" 0
	check_names php "$1"
}

# check_gapped NAME ENGINE MAX: what was decoded is what was logged; at most MAX of a million
# instructions are left out by gaps.
check_gapped() {
	"$O/tools/gapped" "$2" "$T/$1" "$T/$1.log" >"$T/gapped.$2" || { cat "$T/gapped.$2"; fail "$1, $2"; }
	echo "$1 $2: $(tail -n 1 "$T/gapped.$2")"
	tail -n 1 "$T/gapped.$2" | awk -v max="$3" '{ exit !($3 > 0 && $NF * 1000000 <= max * $3) }' ||
		fail "$1, $2: gaps leave out too much"
}

# run_erlang N: the Nth Fibonacci number
run_erlang() {
	installed erl || return 0
	make_erlang -JPperf dump <<-'EOT'
		-module(f).
		-export([fib/1, main/1]).
		fib(N) when N < 2 -> N;
		fib(N) -> fib(N - 1) + fib(N - 2).
		main([N]) -> io:format("~p~nready~n", [fib(list_to_integer(N))]), io:get_line(""), halt(0).
	EOT
	record_alive erlang "${erlang[@]}" "$1"
	# It replaces stubs of native functions, and while a module is loaded it also leads the calls of
	# them astray for a moment.
	check_gapped erlang flow 0
	check_names erlang flow
	drop erlang
}
