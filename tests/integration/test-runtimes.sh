#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# record --jit: runtimes are told to name the code that they make, by what they inherit or by arguments, and what the
# user had set remains. Functions of node, in long runs also of PHP and Java, if they are installed, then have names.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "runtimes are not for sanitized builds"
work=$T/work
mkdir "$work"

# told NAME CMD...: record CMD in $work.
told() {
	local name=$1
	shift
	(cd "$work" && "$O/ptctl" record --jit -o "$T/$name" -- "$@") >"$T/$name.out" 2>"$T/$name.err" ||
		{ cat "$T/$name.err"; fail "$name: exit status $?"; }
	grep "^ptctl: --jit: " "$T/$name.err" || fail "$name: it is not said what was set"
}

# named NAME FUNCTION: code in no file has that name.
named() {
	"$O/ptdecode" functions --rows=1000000 -o "$T/functions" "$T/$1"
	[[ $? == [03] ]] && grep -E "$2.*\(\[(jit|anon)\]\)" "$T/functions" >"$T/found" || {
		grep -E "\[(jit|anon)\]|$2" "$T/functions" | head -n 20
		ls -l "$T/$1/jit"
		fail "$1: $2 has no name"
	}
	head -n 1 "$T/found"
	rm -rf "$T/$1"
}

start_ptd
NODE_OPTIONS=--no-warnings DOTNET_PerfMapEnabled=1 told none sh -c 'echo "$NODE_OPTIONS,$DOTNET_PerfMapEnabled,$PYTHONPERFSUPPORT,${ERL_AFLAGS:-}"'
[[ $(cat "$T/none.out") == "--no-warnings --perf-prof --interpreted-frames-native-stack,1,1," ]] || fail "what is inherited: $(cat "$T/none.out")"
grep -q "ERL_AFLAGS" "$T/none.err" && fail "what an older Erlang refuses is set for all"
NODE_OPTIONS=--perf-prof\ --interpreted-frames-native-stack told again sh -c 'echo "$NODE_OPTIONS"'
[[ $(cat "$T/again.out") == "--perf-prof --interpreted-frames-native-stack" ]] || fail "it is set twice: $(cat "$T/again.out")"

n=0
if command -v node >/dev/null; then
	start_ptd
	told node node -e 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		console.log(fib(18))'
	[[ $(wc -l <"$T/node.err") -lt 5 ]] || fail "node: others' variables are shown"
	named node ".fib "
	n=$((n + 1))
fi
# PHP neither caches nor compiles a file that is younger than two seconds.
if [[ -n ${PTD_LONG:-} ]] && command -v php >/dev/null; then
	echo '<?php function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); } echo fib(18);' >"$work/fib.php"
	touch -d '1 hour ago' "$work/fib.php"
	start_ptd
	told php php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=16M -d opcache.jit=function fib.php
	named php "fib"
	n=$((n + 1))
fi
if [[ -n ${PTD_LONG:-} ]] && command -v java >/dev/null; then
	echo 'class Fib { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
		public static void main(String[] a) { System.out.println(fib(27)); } }' >"$work/Fib.java"
	start_ptd AuxSize=256M
	told java java Fib.java
	named java "Fib.fib"
	n=$((n + 1))
fi
echo "$n runtimes"
[[ $n -gt 0 ]] || skip "no runtime is installed: only what is set was tested"
