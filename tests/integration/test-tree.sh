#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Process trees are followed through fork and exec, whatever the programs do with their descriptors,
# threads and environment, and notice nothing of it.
. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tree.sh"
need qemu-x86_64 "${CC:-cc}"
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"
# python3 may be somebody's shim elsewhere.
export PATH=/usr/bin:/bin
need python3
B=$T/bin
mkdir "$B"

tree pipeline 0 0 sh -c 'ls -lR /usr/include/linux | sort | tail -1'
threads 4
drop pipeline

# The kernel finds the interpreter, and the interpreter another program.
printf '#!/usr/bin/env python3\nimport sys\nprint(sys.argv, sum(range(1000)))\nsys.exit(3)\n' >"$B/script"
printf '#! %s  -with an argument \n' "$B/script-of-script" >"$B/outer"
printf '#!/bin/sh\necho "$0" "$@"\n' >"$B/script-of-script"
chmod +x "$B"/*
tree script 3 0 sh -c "'$B/script' a 'b c'; exit \$?"
threads 2
"$O/ptdecode" summary "$T/script" >"$T/summary" || fail "script: ptdecode"
grep -q '\<python3\>' "$T/summary" || { cat "$T/summary"; fail "script: python3 does not appear"; }
drop script
tree outer 0 0 sh -c "'$B/outer' x; :"
drop outer

# What cannot be executed fails as always.
printf 'no-program-either\n' | tee "$B/text" >"$B/command"
chmod +x "$B/command"
tree errors 0 0 bash -c "nothing-of-this-name 2>/dev/null; echo \$?; '$B/text' 2>/dev/null; echo \$?
	'$B/command' 2>/dev/null; echo \$?; exec -a othername sh -c 'echo \$0'"
drop errors

# The environment, with what would concern the emulator's own loader; the descriptors.
tree environment 0 0 env -i Z=1 LD_LIBRARY_PATH=/nowhere LD_PRELOAD= A=2 B=a,b QEMU_LOG=x sh -c \
	'env | grep -v ^_= | sort; ls /proc/self/fd | wc -l'
drop environment

tree daemonize 7 0 "$O/targets/daemonize.c"
threads 3
drop daemonize

# All other threads end, whichever of them executes the program.
for who in "" other; do
	tree execthreads 5 0 "$O/targets/execthreads.c" $who
	drop execthreads
done

tree killed 137 1 bash -c 'sh -c "i=0; while :; do i=\$((i + 1)); done" & sleep 0.3; kill -9 $!
	wait $! 2>/dev/null'
drop killed

# Numbers and times in namespaces of their own would be taken for others: their programs run alone.
if unshare --pid --time true 2>/dev/null; then
	for kind in pid time; do
		tree $kind 3 0 unshare --$kind --fork sh -c 'ls /usr | sort | tail -1; exit 3'
		threads 1
		grep -q "^ptd-emu.so: a child of process [0-9]*: not recorded: it is in another $kind namespace than ptd$" \
			"$T/$kind.err" || { cat "$T/$kind.err"; fail "$kind: nothing is said of it"; }
		drop $kind
		unshare --$kind --fork "$O/ptctl" record -- /bin/echo recorded >"$T/out" 2>"$T/err" &&
			fail "$kind: a whole recording in another namespace"
		grep -q "the program cannot be recorded: it is in another $kind namespace than ptd" "$T/err" ||
			{ cat "$T/err"; fail "$kind: nothing is said of a whole recording"; }
		[[ ! -s $T/out ]] || fail "$kind: $(cat "$T/out")"
	done
else
	echo "no namespaces can be made here: that their programs are left alone is not tested"
fi

# Static, and for another machine: x32, which the kernel may not take either, and with other rights than ours.
printf 'int main(void) { return 6; }' | "${CC:-cc}" -x c -static -o "$B/static" - || fail "cc -static"
tree static 6 0 sh -c "'$B/static'; exit \$?"
threads 2
drop static

printf '\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0\x54\x80\x04\x08\x34\0\0\0\0\0\0\0' >"$B/x32"
printf '\0\0\0\0\x34\0\x20\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\x80\x04\x08\0\x80\x04\x08' >>"$B/x32"
printf '\x60\0\0\0\x60\0\0\0\x05\0\0\0\0\x10\0\0\xb8\x01\0\0\0\xbb\x2a\0\0\0\xcd\x80' >>"$B/x32"
chmod +x "$B/x32"
sh -c "'$B/x32'; exit \$?" 2>/dev/null
status=$?
tree x32 $status 0 sh -c "'$B/x32'; exit \$?"
grep -q "x32: not recorded: it is no program for x86 that QEMU runs" "$T/x32.err" ||
	{ cat "$T/x32.err"; fail "x32: nothing is said of it"; }
drop x32

# What cannot be recorded runs as it would without us: with the same rights and the same words, whether
# ptctl itself or a recorded program executes it.
# unseen NAME FILE WHY
unseen() {
	local name=$1 file=$2 why=$3 native
	native=$("$file")
	status=$?
	tree "$name" $status 0 sh -c "'$file'; exit \$?"
	grep -qx "ptd-emu.so: $file: not recorded: $why" "$T/$name.err" || fail "$name: $(cat "$T/$name.err")"
	drop "$name"
	"$O/ptctl" record -o "$T/$name" -- "$file" >"$T/$name.out" 2>"$T/$name.err"
	[[ $? == "$status" ]] || fail "$name: another status than $status: $(cat "$T/$name.err")"
	[[ $(cat "$T/$name.out") == "$native" ]] || fail "$name: $(cat "$T/$name.out") instead of $native"
	grep -qx "ptctl: $file: not recorded: $why" "$T/$name.err" || fail "$name: $(cat "$T/$name.err")"
	grep -q "0 B of PT in $T/$name: nothing was being recorded" "$T/$name.err" || fail "$name: $(cat "$T/$name.err")"
	drop "$name"
	echo "$name: the same both ways"
}

if [[ $(id -u) == 0 ]]; then
	printf '#include <stdio.h>\n#include <unistd.h>\nint main(void) { return printf("%%u\\n", geteuid()) != 6; }' |
		"${CC:-cc}" -x c -static -o "$B/setuid" - || fail "cc -static"
	cp "$B/setuid" "$B/own"
	chown 65534 "$B/setuid" && chmod 4755 "$B/setuid" "$B/own"
	chmod 755 "$T" "$B"
	[[ $("$B/setuid") == 65534 ]] || skip "set-user-ID has no effect in $B"
	unseen setuid "$B/setuid" "it gains privileges, which it would not under the emulator"

	# root gains nothing by a program of root's.
	tree own 1 0 "$B/own"
	! grep -q "not recorded" "$T/own.err" || fail "own: $(cat "$T/own.err")"
	threads 1
	drop own
else
	echo "not root: programs of other users are not tested"
fi
