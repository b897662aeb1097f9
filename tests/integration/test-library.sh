#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The library as others use it, from nothing but what "make install" puts into a directory.
. "$(dirname "$0")/lib/common.sh"
[[ -z ${PTD_ASAN:-} ]] || skip "a sanitized library needs the sanitizer in each program that loads it"
need pkg-config nm cc c++ python3 qemu-x86_64

D=$T/dest
prefix=/opt/ptd
make -s install O="$O" VERSION=dev DESTDIR="$D" prefix=$prefix >"$T/install.log" 2>&1 || fail "$(cat "$T/install.log")"
export PKG_CONFIG_LIBDIR=$D$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$D
lib=$D$prefix/lib

echo "--- names"
# all_ours WHAT: the names on standard input begin with ptd_.
all_ours() {
	awk -v what="$1" '
		$2 == "A" { next } # the version itself
		$NF ~ /^ptd_/ { n++ }
		$NF !~ /^ptd_/ { print what " has " $NF; bad = 1 }
		END { print what ": " n + 0 " names, all ptd_*"; exit bad || n < 10 }' || fail "$1 has names of others"
}
nm -D --defined-only "$lib/libptdecode.so" | sed 's/@.*//' | all_ours libptdecode.so
nm --defined-only --extern-only "$lib/libptdecode.a" | grep ' ' | all_ours libptdecode.a
[[ $(readelf -d "$lib/libptdecode.so") == *"soname: [libptdecode.so.0]"* ]] || fail "the soname"

echo "--- the lint of names"
list=decoder/libptdecode.symbols
# symbols_say TEXT LIST VERSION: what the lint prints; "": it finds nothing wrong.
symbols_say() {
	local out status=0
	out=$(tests/check-symbols.sh "$lib/libptdecode.so" "$2" "$3") || status=$?
	[[ ${out#*: } == "$1" && $status == "$((${#1} > 0))" ]] || fail "status $status, '$out' instead of '$1'"
}
symbols_say "" $list "$(<VERSION)"
sed '$a ptd_yesterday' $list >"$T/symbols"
symbols_say "no longer exports ptd_yesterday, though the version is still 0.3" "$T/symbols" 0.3.1
symbols_say "" "$T/symbols" 0.4
grep -v ptd_calls_new $list >"$T/symbols"
symbols_say "exports ptd_calls_new, which $T/symbols lacks" "$T/symbols" 0.4

echo "--- programs"
examples=$D$prefix/share/doc/ptd/examples
read -ra flags <<<"$(pkg-config --cflags --libs ptdecode)"
read -ra all_flags <<<"$(pkg-config --static --cflags --libs ptdecode)"
[[ "${flags[*]}" == "-I$D$prefix/include -L$lib -lptdecode" ]] || fail "pkg-config: ${flags[*]}"
cc -std=c11 -Wall -Werror -pthread "$examples/insns.c" "${flags[@]}" -o "$T/c" || fail "the C program"
c++ -std=c++17 -Wall -Werror "$examples/insns.cc" "${flags[@]}" -o "$T/cc" || fail "the C++ program"
cc -std=c11 -pthread "$examples/insns.c" "${all_flags[@]/-lptdecode/-l:libptdecode.a}" -o "$T/static" ||
	fail "the C program with the archive"
[[ $(readelf -d "$T/static") != *libptdecode* ]] || fail "the archive was not linked"
export LD_LIBRARY_PATH=$lib

start_ptd
record it "$O/targets/calls.c"
record other "$O/targets/names.c"
"$T/c" "$T/it" "$T/c.out" "$T/other" "$T/c.other" || fail "C: exit status $?"
"$T/static" "$T/it" "$T/static.out" || fail "C with the archive: exit status $?"
"$T/cc" "$T/it" "$T/cc.out" || fail "C++: exit status $?"
python3 "$examples/insns.py" "$T/it" "$T/py.out" || fail "Python: exit status $?"
for program in static cc py; do
	cmp "$T/c.out" "$T/$program.out" || fail "the output of $program is not that of the C program"
done

# same_as_ptdecode RECORDING OUTPUT: the first instructions, and how many each function executed.
same_as_ptdecode() {
	local n
	"$O/ptdecode" export addresses -o "$T/addresses" --also "summary --rows=1000000 -o $T/summary" "$T/$1" ||
		fail "ptdecode: exit status $?"
	od -An -v -tx8 -w8 "$T/addresses" | head -n 1000 | sed 's/^ *0*//' >"$T/expected"
	head -n 1000 "$2" | cut -d' ' -f1 >"$T/got"
	cmp "$T/got" "$T/expected" || fail "$1: other instructions than ptdecode's"
	sed -n '/^Symbols/,/^$/p' "$T/summary" | sed -nE 's/^ +([0-9]+) +[0-9.]+  (.*) \(.*\)$/\1 \2/p' | count >"$T/expected"
	tail -n +1001 "$2" | sed 's/^ *//' | count >"$T/got"
	n=$(awk '{ n += $1 } END { print n }' "$T/got")
	[[ $n == $(($(stat -c %s "$T/addresses") / 8)) ]] || fail "$1: $n instructions were counted"
	cmp "$T/got" "$T/expected" || fail "$1: $(diff "$T/got" "$T/expected" | head)"
	echo "$1: $n instructions of $(wc -l <"$T/got") functions"
}

# count: add up the lines "N NAME" of the same name.
count() {
	awk '{ n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n } END { for (name in sum) print sum[name], name }' | sort
}

same_as_ptdecode it "$T/c.out"
same_as_ptdecode other "$T/c.other"

echo "--- a file that is cut off while it is decoded"
cut_off() {
	local status
	cp "$1" "$T/cut"
	shift
	mkfifo "$T/fifo"
	"$O/ptdecode" export addresses -o "$T/fifo" "$@" 2>"$T/cut.err" &
	# It waits, in the middle, for whoever reads what it writes.
	exec 3<"$T/fifo"
	head -c 1000 <&3 >/dev/null
	truncate -s 4000 "$T/cut"
	cat <&3 >/dev/null
	exec 3<&-
	wait $!
	status=$?
	[[ $status == 1 && $(<"$T/cut.err") == *"$T/cut: became shorter while it was decoded: it had "* ]] ||
		fail "exit status $status: $(cat "$T/cut.err")"
	rm "$T/cut" "$T/fifo"
}
cut_off "$T/it/data" "$T/cut"

echo "--- two threads"
mkdir "$T/tsan"
cp "$O/tsan/libptdecode.so".* "$T/tsan/libptdecode.so.0" || skip "no library that was built with TSan: make tests"
cc -std=c11 -g -fsanitize=thread -pthread "$examples/insns.c" "${flags[@]}" -o "$T/c-tsan" || fail "the C program under TSan"
echo 'race:libcrypto' >"$T/tsan.known" # it is not built with TSan, which does not see its locks
LD_LIBRARY_PATH=$T/tsan TSAN_OPTIONS=halt_on_error=0:print_suppressions=0:suppressions=$T/tsan.known "$T/c-tsan" "$T/it" "$T/tsan.out" "$T/other" "$T/tsan.other" \
	"$T/it" "$T/tsan.again" 2>"$T/tsan.err" || fail "under TSan: $(cat "$T/tsan.err")"
[[ ! -s $T/tsan.err ]] || fail "$(cat "$T/tsan.err")"
cmp "$T/c.out" "$T/tsan.out" && cmp "$T/c.out" "$T/tsan.again" && cmp "$T/c.other" "$T/tsan.other" ||
	fail "two threads decode otherwise than one"
echo ok
