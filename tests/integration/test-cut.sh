#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Files that are cut off while ptdecode reads them: an object, a debug file, a jitdump, a code log. What was
# listed until then is what the whole file gives; then there is an error that names the file, unless all of it
# had been read.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 cc objcopy truncate

# decode OUTPUT COMMAND...: let ptdecode with each engine wait, in the middle, for whoever reads what it writes;
# meanwhile run the command.
decode() {
	local output=$1 status fifo=$T/fifo.$engine
	shift
	mkfifo "$fifo"
	"$O/ptdecode" --force --engine "$engine" export addresses -o "$fifo" "$T/cut" 2>"$T/said" &
	exec 3<"$fifo"
	head -c 1000 <&3 >"$output"
	"$@"
	cat <&3 >>"$output"
	exec 3<&-
	wait $!
	status=$?
	rm "$fifo"
	return $status
}

# cut_off RECORDING FILE "error"|"whole"|"either": FILE is relative to the recording.
cut_off() {
	local status size
	for engine in insn flow; do
		rm -rf "$T/cut"
		cp -r "$T/$1" "$T/cut"
		decode "$T/whole" true || fail "$1: exit status $?: $(cat "$T/said")"
		decode "$T/part" truncate -s 100 "$T/cut/$2"
		status=$?
		size=$(stat -c %s "$T/part")
		cmp -n "$size" "$T/whole" "$T/part" || fail "$engine: $1 without its $2: other instructions"
		case $3:$status in
		error:1 | either:1)
			grep -q "$T/cut/$2: was cut off at byte 100 while it was read: it had " "$T/said" ||
				fail "$engine: $1 without its $2: $(cat "$T/said")"
			;;
		whole:0 | either:0) cmp "$T/whole" "$T/part" || fail "$engine: $1 without its $2: not all instructions" ;;
		*) fail "$engine: $1 without its $2: exit status $status: $(cat "$T/said")" ;;
		esac
		echo "$engine: $1 without its $2: exit status $status, $((size / 8)) of $(($(stat -c %s "$T/whole") / 8)) instructions"
	done
}

start_ptd

echo "--- an object, and its debug file"
{
	echo 'volatile int sum;'
	for i in {1..300}; do
		echo "__attribute__((aligned(512))) void a_function_with_a_long_name_$i(void) { for (int i = 0; i < 500; i++) sum += $i; }"
	done
	echo 'int main(void) {'
	for i in {1..300}; do
		echo "a_function_with_a_long_name_$i();"
	done
	echo '}'
} >"$T/program.c"
cc -O1 -g -Wl,--build-id=0xabcdef0123456789abcdef0123456789abcdef01 -o "$T/program" "$T/program.c" || fail "program.c"
objcopy --only-keep-debug "$T/program" "$T/program.debug" && strip "$T/program" || fail "strip"
record many "$T/program"
id=objects/.build-id/ab/cdef0123456789abcdef0123456789abcdef01
cp "$T/program.debug" "$T/many/$id.debug"
cut_off many $id/elf error
cut_off many $id.debug whole

echo "--- code that is in no file"
mkdir "$T/dumps"
record jit "$O/targets/jit.c" "$T/dumps"
cut_off jit "$(cd "$T/jit" && echo jit/jit-*.dump)" whole
cut_off jit "$(cd "$T/jit" && echo mem/*.code)" either
echo ok
