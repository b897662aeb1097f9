#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that Bun's jitdump is called jit-PID.dump, as perf wants it. Its name begins with the number of the
# thread that writes it, which is not the process's; the process's is the second one.
#
# Depended on by: util/mapname.h and decoder/jit, which know a jitdump by its first bytes.
. "$(dirname "$0")/lib.sh"
npm_package @oven/bun-linux-x64@1.4.5
echo "bun $(package/bin/bun --version)"
echo 'function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } console.log(f(24))' >short.js
mkdir dumps
BUN_JSC_useJITDump=1 BUN_JSC_jitDumpDirectory=$T/dumps package/bin/bun short.js >/dev/null &
wait $!
pid=$!
n=0
for file in dumps/*; do
	jitdump "$file" >records
	echo "process $pid: $(basename "$file"), $(grep -c '^0 ' records) functions, the end: $(tail -n 1 records)"
	[[ $(basename "$file") =~ ^jit-([0-9]+)-$pid\.dump$ ]] || changed "another name"
	((BASH_REMATCH[1] != pid)) || changed "the first number is the process's"
	n=$((n + 1))
done
((n > 0)) || changed "no dump"
