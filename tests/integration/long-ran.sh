#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-ran, with programs that make much code, none of which they note: Java, whose compilers patch what
# they made; node with a worker; PHP with both its JITs, and that of its regular expressions; Erlang, which
# replaces stubs of native functions while it loads the modules that have them.
. "$(dirname "$0")/common.sh"
. tests/integration/ran.sh
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds"
start_ptd

if installed keytool; then
	# A program that is part of the runtime: it makes a key, and writes it down, encrypted.
	ran java block 5000000 keytool -genkeypair -alias key -keyalg EC -dname CN=key -storepass secret1 -keystore "$T/store"
fi
if installed node; then
	cat >"$T/script.js" <<-'EOT'
		const { Worker, isMainThread } = require("worker_threads");
		function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		let sum = 0;
		for (let i = 0; i < 400; i++) {
			const f = new Function("n", "let s = " + i + "; for (let k = 0; k < n; k++) s ^= k * " + i + "; return s");
			for (let k = 0; k < 20; k++) sum += f(20);
		}
		for (let i = 0; i < 100; i++) sum += fib(18);
		console.log(sum);
		if (isMainThread) new Worker(__filename);
	EOT
	ran node block 20000000 env -u NODE_EXTRA_CA_CERTS node "$T/script.js"
fi
if installed php; then
	cat >"$T/work.php" <<-'EOT'
		<?php
		function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
		function mix($k) {
			$s = 0;
			for ($i = 0; $i < $k; $i++) {
				if ($i % 3 == 0) $s += $i; elseif ($i % 5 == 0) $s ^= $i; else $s -= 1;
			}
			return $s;
		}
		echo fib(22), "\n";
		for ($j = 0; $j < 200; $j++) $t = mix(100 + $j);
		$a = [];
		for ($j = 0; $j < 20000; $j++) { $k = "k" . ($j % 50); $a[$k] = ($a[$k] ?? 0) + $j; ksort($a); }
		$text = str_repeat("the quick brown fox jumps over 12345 lazy dogs, foo@bar.example, ", 40);
		for ($n = $i = 0; $i < 40; $i++)
			$n += preg_match_all('/\b\w+o\w*\b/', $text) + preg_match_all("/f(o+|x)[^,]{0,$i}/", $text);
		echo $t, array_sum($a), $n, "\n";
	EOT
	# The cache does not take files that are younger than two seconds.
	touch -d '1 hour ago' "$T/work.php"
	for mode in function tracing; do
		ran php block 5000000 php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=$mode "$T/work.php"
	done
fi
if installed erl; then
	export ERL_CRASH_DUMP=$T/erl_crash.dump
	cat >"$T/f.erl" <<-'EOT'
		-module(f).
		-export([main/1, fib/1]).
		fib(N) when N < 2 -> N;
		fib(N) -> fib(N - 1) + fib(N - 2).
		main([N]) ->
			L = [{I, I * I} || I <- lists:seq(1, 200)],
			{150, S} = lists:keyfind(150, 1, L),
			{match, _} = re:run("hello world", "o w"),
			{_, _} = binary:match(<<"hello world">>, <<"wor">>),
			"abc" = unicode:characters_to_list(<<"abc">>),
			T = ets:new(t, [set]), true = ets:insert(T, L), [{3, 9}] = ets:lookup(T, 3),
			C = erlang:crc32(<<"abc">>), M = erlang:phash2(maps:from_list(L)),
			Again = [begin code:purge(f), {module, f} = code:load_file(f), ?MODULE:fib(list_to_integer(N)) end || _ <- [1]],
			io:format("~p~n", [{S, C, M, math:sqrt(2), Again}]),
			halt(0).
	EOT
	(cd "$T" && erlc f.erl) || fail "erlc"
	root=$(erl -noshell -eval 'io:format("~s", [code:root_dir()]), halt().')
	bin=$(echo "$root"/erts-*/bin)
	# Without the shell scripts around it, and without schedulers that wait busily. That it writes a map of
	# names has its code mapped once: it writes to it through a second mapping else, which QEMU does not see.
	ran erlang block 2000000 env -C "$T" ROOTDIR="$root" BINDIR="$bin" EMU=beam PROGNAME=erl "$bin/beam.smp" \
		-sbwt none -sbwtdcpu none -sbwtdio none -S 1:1 -SDcpu 1:1 -SDio 1 -A 1 -JPperf map -- \
		-root "$root" -bindir "$bin" -progname erl -- -home "$T" -- -noshell -pa "$T" -run f main 18
fi
exit 0
