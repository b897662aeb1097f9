#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-calltruth.sh, for programs in Go, OCaml and JavaScript. Then real programs, of which QEMU logs the
# stack pointer before each instruction in the same run: a function is open as long as that is not above its
# return address. ONLY names those to be taken.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need_large

# wanted NAME COMMAND: whether it is to be taken, and can be; if not, that is said.
wanted() {
	[[ -z ${ONLY:-} || " $ONLY " == *" $1 "* ]] && installed "$2"
}

# truth NAME OPTION... FILE: the calls of the recording NAME are those that it logged.
truth() {
	local name=$1
	shift
	"$O/tools/calltruth" "${@:1:$#-1}" "$T/$name" "$T/$name.calls" "${@: -1}" >"$T/said" ||
		{ cat "$T/said"; fail "$name"; }
	echo "$name: $(paste -sd '|' "$T/said" | sed 's/|/; /g')"
	drop "$name"
}

# by_rsp NAME OPTION CMD...: the calls of the recorded command fit its stack pointer. QEMU writes its log to
# a file, since through a FIFO each of its lines wakes the reader.
by_rsp() {
	local name=$1 option=$2
	shift 2
	QEMU_LOG=cpu,nochain QEMU_SINGLESTEP=1 QEMU_LOG_FILENAME=$T/qemu.log \
		"$O/ptctl" record -o "$T/$name" -- "$@" >"$T/$name.out" 2>"$T/$name.err" ||
		{ cat "$T/$name.err"; fail "$name"; }
	LC_ALL=C grep -E '^(RSI=|RIP=|FS =)' "$T/qemu.log" | "$O/tools/callrsp" $option "$T/$name" >"$T/said" ||
		{ cat "$T/said"; fail "$name, by its stack pointer"; }
	echo "$name, by its stack pointer: $(tail -1 "$T/said")"
	rm "$T/qemu.log"
	drop "$name"
}

# node_truth PART ROUNDS OPTION...: the interpreter's frames have names, too.
node_truth() {
	local part=$1 rounds=$2
	shift 2
	record_jit node env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof \
		--interpreted-frames-native-stack --no-turbo-inlining "$@" \
		"$PWD/tests/targets/calltruth.js" "$T/node.calls" "$part" "$rounds"
	truth node -f calltruth.js
}

if wanted node node; then
	node_truth calm 400
	node_truth calm 400 --always-sparkplug
	node_truth deopt 60
	node_truth deopt 60 --always-sparkplug
	# In the interpreter the packets do not show which function catches an exception until it returns.
	node_truth throw 200 --always-sparkplug
fi

start_ptd
if wanted ocaml ocamlopt; then
	cat >"$T/stubs.c" <<-'END'
		#include <caml/callback.h>
		#include <caml/mlvalues.h>
		value call_back(value f, value n)
		{
			return caml_callback(f, n);
		}
	END
	cp tests/targets/calltruth.ml "$T/truth.ml"
	(cd "$T" && ocamlopt -inline 0 -o ocaml.program stubs.c truth.ml) || fail "ocamlopt"
	mv "$T/ocaml.program" "$T/program-ocaml"
	record ocaml "$T/program-ocaml" "$T/ocaml.calls"
	truth ocaml -a program-ocaml
	by_rsp ocaml "" "$T/program-ocaml" "$T/unused"
fi
if wanted go go; then
	HOME=$T go build -o "$T/program-go" tests/targets/calltruth.go || fail "go"
	GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1 record go "$T/program-go" "$T/go.calls"
	truth go program-go
	GOGC=off GOMAXPROCS=1 GODEBUG=asyncpreemptoff=1 by_rsp go-1 -s "$T/program-go" 4
	# With several Ps, a goroutine may be seen to go on in one thread before it is seen to be parked in another:
	# what is inferred then is ambiguous.
	GOGC=off GOMAXPROCS=4 GODEBUG=asyncpreemptoff=1 by_rsp go-4 -s "$T/program-go" 4
fi
! wanted true true || by_rsp true "" /bin/true
! wanted perl perl || by_rsp perl "" perl -e 'sub f { my $n = shift; $n < 2 ? $n : f($n - 1) + f($n - 2) }
	eval { die "x" }; print f(5); local $_ = "abcabc"; s/(b)/<$1>/g; print'
if wanted g++ g++; then
	touch "$T"/{a,b,c}.cc
	by_rsp g++ "" "$(command -v g++)" -### -O2 "$T"/{a,b,c}.cc -o "$T/none"
fi
exit 0
