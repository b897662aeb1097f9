# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The programs with JIT compilers that several scripts record, which source this file after common.sh.

# installed COMMAND: whether it can be recorded; if not, that is said.
installed() {
	command -v "$1" >/dev/null || { echo "$1 is not installed: left out" && false; }
}

# need_large: skips a script that records programs with much code, where that cannot be done.
need_large() {
	need qemu-x86_64
	[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds"
}

# node_program N [MORE]: prints JavaScript that makes and calls N functions, then executes MORE, which may
# add to sum, and does all of it once more in a worker. node's JIT compiler uses its addresses again.
node_program() {
	cat <<-EOT
		const { Worker, isMainThread } = require("worker_threads");
		let sum = 0;
		for (let i = 0; i < $1; i++) {
			const f = new Function("n", "let s = " + i + "; for (let k = 0; k < n; k++) s ^= k * " + i + "; return s");
			for (let k = 0; k < 20; k++) sum += f(20);
		}
		${2:-}
		console.log(sum);
		if (isMainThread) new Worker(__filename);
	EOT
}

# php_program FIB MIX [MORE]: prints PHP, without the opening tag, that has many traces: the FIBth Fibonacci
# number, MIX calls of a function with branches, an array that is sorted again and again, and MORE.
php_program() {
	cat <<-EOT
		function fib(\$n) { return \$n < 2 ? \$n : fib(\$n - 1) + fib(\$n - 2); }
		function mix(\$k) {
			\$s = 0;
			for (\$i = 0; \$i < \$k; \$i++) {
				if (\$i % 3 == 0) \$s += \$i; elseif (\$i % 5 == 0) \$s ^= \$i; else \$s -= 1;
			}
			return \$s;
		}
		echo fib($1), "\n";
		for (\$j = 0; \$j < $2; \$j++) \$t = mix(100 + \$j);
		\$a = [];
		for (\$j = 0; \$j < 20000; \$j++) { \$k = "k" . (\$j % 50); \$a[\$k] = (\$a[\$k] ?? 0) + \$j; ksort(\$a); }
		echo \$t, array_sum(\$a), "\n";
		${3:-}
	EOT
}

# php_regex_program N: prints PHP, without the opening tag, that searches a text N times with regular
# expressions, which have a JIT compiler of their own.
php_regex_program() {
	cat <<-EOT
		\$text = str_repeat("the quick brown fox jumps over 12345 lazy dogs, foo@bar.example, ", $1);
		for (\$n = \$i = 0; \$i < $1; \$i++)
			\$n += preg_match_all('/\b\w+o\w*\b/', \$text) + preg_match_all("/f(o+|x)[^,]{0,\$i}/", \$text);
		echo \$n, "\n";
	EOT
}

# write_php FILE: writes the PHP on stdin to FILE, for which opcache has JIT code: it does not take files
# that are younger than two seconds.
write_php() {
	{ echo '<?php' && cat; } >"$1"
	touch -d '1 hour ago' "$1"
}

# make_erlang FLAG...: compiles the module f on stdin, and sets the array erlang to the command that calls
# its function main with the strings that follow. This is erl without the shell scripts around it, and
# without schedulers that wait busily; FLAGs are for the emulator.
make_erlang() {
	local root bin
	export ERL_CRASH_DUMP=$T/erl_crash.dump
	cat >"$T/f.erl"
	(cd "$T" && erlc f.erl) || fail "erlc"
	root=$(erl -noshell -eval 'io:format("~s", [code:root_dir()]), halt().')
	bin=$(echo "$root"/erts-*/bin)
	erlang=(env -C "$T" ROOTDIR="$root" BINDIR="$bin" EMU=beam PROGNAME=erl "$bin/beam.smp"
		-sbwt none -sbwtdcpu none -sbwtdio none -S 1:1 -SDcpu 1:1 -SDio 1 -A 1 "$@" --
		-root "$root" -bindir "$bin" -progname erl -- -home "$T" -- -noshell -pa "$T" -run f main)
}
