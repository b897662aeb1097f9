#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-calltruth.sh, for programs in Go and OCaml. Then real programs: each function is open as long as the stack
# pointer, which QEMU logs in the same run, is not above its return address.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

# truth NAME OPTION... : the calls of the recording NAME are those that it logged.
truth() {
	local name=$1
	shift
	"$O/tools/calltruth" "$@" "$T/$name" "$T/$name.calls" "$name.bin" >"$T/said" || { cat "$T/said"; fail "$name"; }
	cat "$T/said"
}

# by_rsp NAME CMD...: the calls of the recorded command fit its stack pointer.
by_rsp() {
	local name=$1 log
	shift
	rm -f "$T/qemu.log"
	mkfifo "$T/qemu.log"
	LC_ALL=C grep -E '^(RSI|RIP)=' <"$T/qemu.log" >"$T/rsp.log" &
	log=$!
	QEMU_LOG=exec,cpu,nochain QEMU_SINGLESTEP=1 QEMU_LOG_FILENAME=$T/qemu.log \
		"$O/ptctl" record -o "$T/$name" -- "$@" >"$T/$name.out" 2>"$T/$name.err" ||
		{ cat "$T/$name.err"; fail "$name"; }
	wait $log
	"$O/tools/callrsp" "$T/$name" <"$T/rsp.log" >"$T/said" || { cat "$T/said"; fail "$name, by its stack pointer"; }
	echo "$name: $(tail -1 "$T/said")"
	drop "$name"
}

start_ptd
if command -v ocamlopt >/dev/null; then
	cat >"$T/stubs.c" <<-'END'
		#include <caml/callback.h>
		#include <caml/mlvalues.h>
		value call_back(value f, value n)
		{
			return caml_callback(f, n);
		}
	END
	cp tests/targets/calltruth.ml "$T/truth.ml"
	(cd "$T" && ocamlopt -inline 0 -o ocaml.bin stubs.c truth.ml) || fail "ocamlopt"
	record ocaml "$T/ocaml.bin" "$T/ocaml.calls"
	truth ocaml -a
	rm "$T/ocaml.calls"
else
	echo "OCaml is not installed: left out"
fi
if command -v go >/dev/null; then
	HOME=$T go build -o "$T/go.bin" tests/targets/calltruth.go || fail "go"
	GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1 record go "$T/go.bin" "$T/go.calls"
	truth go
else
	echo "Go is not installed: left out"
fi
by_rsp true /bin/true
by_rsp perl perl -e 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) }
	eval { die "x" }; print f(5); local $_ = "abcabc"; s/(b)/<$1>/g; print'
by_rsp g++ "$(command -v g++)" --version
[[ ! -x $T/ocaml.bin ]] || by_rsp ocaml "$T/ocaml.bin" "$T/ocaml.calls"
