#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-ran, with programs that make much code, none of which they note: Java, whose compilers patch what
# they made; node with a worker; PHP with both its JITs, and that of its regular expressions; Erlang, which
# replaces stubs of native functions while it loads the modules that have them.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/ran.sh
need_large
start_ptd

if installed keytool; then
	# A program that is part of the runtime: it makes a key, and writes it down, encrypted.
	ran java block 5000000 keytool -genkeypair -alias key -keyalg EC -dname CN=key -storepass secret1 -keystore "$T/store"
fi
if installed node; then
	node_program 400 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		for (let i = 0; i < 100; i++) sum += fib(18);' >"$T/script.js"
	ran node flow 20000000 env -u NODE_EXTRA_CA_CERTS node "$T/script.js"
fi
if installed php; then
	php_program 22 200 "$(php_regex_program 40)" | write_php "$T/work.php"
	for mode in function tracing; do
		ran php flow 5000000 php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=$mode "$T/work.php"
	done
fi
if installed erl; then
	# Since it writes a map of names, its code is mapped once. Otherwise Erlang writes to its code through a
	# second mapping, which QEMU does not see.
	make_erlang -JPperf map <<-'EOT'
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
	ran erlang flow 2000000 "${erlang[@]}" 18
fi
exit 0
