#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Programs that log which functions they enter and leave: the call layer says the same, in the same order.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

# truth NAME OBJECT...: the calls of the recording NAME are those that it logged.
truth() {
	local name=$1
	shift
	"$O/tools/calltruth" "$T/$name" "$T/$name.calls" "$@" >"$T/said" || { cat "$T/said"; fail "$name"; }
	tail -n 12 "$T/said"
	grep -q '^0 switches\|of them' "$T/said" || fail "$name: no counts"
	! grep -q '^gap:' "$T/said" || { cat "$T/said"; fail "$name: gaps"; }
}

cat >"$T/opened.c" <<'END'
static __attribute__((noipa)) int inner(void (*note)(char, const char *), unsigned long n)
{
	int r;

	note('+', "inner");
	r = n ? inner(note, n - 1) : 3;
	note('-', "inner");
	return r;
}
void opened(void (*note)(char, const char *), unsigned long (*leaf)(unsigned long))
{
	note('+', "opened");
	leaf(1);
	inner(note, 5);
	leaf(2);
	note('-', "opened");
}
END
${CC:-cc} -O2 -shared -fPIC -o "$T/opened.so" "$T/opened.c" || skip "no compiler"

start_ptd
record calls "$O/targets/calltruth.c" "$T/calls.calls" "$T/opened.so"
truth calls calltruth.c opened.so
drop calls
# Built with thunks for indirect branches and returns, which are in no call.
n=0
while read -r compiler flags; do
	name=thunks$((++n))
	$compiler $flags -O2 -g -pthread -o "$T/$name.c" tests/targets/calltruth.c &&
		$compiler $flags -O2 -shared -fPIC -o "$T/opened.so" "$T/opened.c" ||
		{ echo "not built: $compiler $flags"; continue; }
	record $name "$T/$name.c" "$T/$name.calls" "$T/opened.so"
	truth $name $name.c opened.so
	! "$O/ptdecode" calls "$T/$name" 2>/dev/null | grep -E "thunk_|retpoline_" || fail "$flags: thunks are functions"
	drop $name
done <<END
${CC:-cc} -fcf-protection=none -mindirect-branch=thunk -mfunction-return=thunk
${CC:-cc} -fcf-protection=none -mindirect-branch=thunk-inline -mfunction-return=thunk-inline
clang -w -Dnoipa=noinline -mretpoline
END

record throw "$O/targets/calltruth-throw.cc" "$T/throw.calls"
truth throw calltruth-throw.cc
