#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-calltruth.sh, for programs in Go and OCaml.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

# truth NAME OPTION... : the calls of the recording NAME are those that it logged.
truth() {
	local name=$1
	shift
	"$O/tools/calltruth" "$@" "$T/$name" "$T/$name.calls" "$name.bin" >"$T/said" || { cat "$T/said"; fail "$name"; }
	cat "$T/said"
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
