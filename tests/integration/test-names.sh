#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The symbol of an instruction is the function that `addr2line` names: 1000 instructions, picked
# by a seed, of a stripped binary with a debug file (found by build-id in a debug directory, by build-id
# in the snapshot, by .gnu_debuglink), of a PIE, of a static binary, and of a C++ program. Names of
# C++ and Rust are compared as they were written (-C).
#
# Two things have to be known to read addr2line:
# - Where a file has DWARF it names inlined functions, and a clone or a part that the compiler split off
#   after its origin; a symbol table knows no inlined functions. The programs are therefore built with
#   -O1 -fno-inline, and keep their DWARF: so the names of the symbol table are compared with what the
#   compiler says independently of it. (Some functions of libstdc++ are inlined all the same.) Rust's
#   library comes with both inlining and DWARF; there addr2line is given a program without DWARF.
# - It says "??" of the stubs of the PLT, which have no symbols; those have to be called NAME@plt
#   here, OBJECT+ADDRESS, or nothing, are checked against objdump by test-resolver, and do not count: of
#   1200 instructions picked no other may differ, and 1000 must have the very name.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 addr2line objcopy strip
seed=${PTD_SEED:-8}

# Of each address that addr2line -afi was asked for: the function into which all others were inlined.
outermost() {
	awk '/^0x[0-9a-f]+$/ { if (NR > 1) print name; n = 0; next }
		n++ % 2 == 0 { name = $0 }
		END { print name }'
}

# compare NAME OBJECT TRUTH ARGS...: what was executed in OBJECT in snapshot NAME, against addr2line on
# the file TRUTH.
compare() {
	local name=$1 object=$2 truth=$3
	shift 3
	"$O/tools/names" "$@" -n 1200 -s "$seed" "$T/$name" "$object" >"$T/picked" || fail "$name: names"
	cut -f1 "$T/picked" | addr2line -afiC -e "$truth" | outermost | paste "$T/picked" - >"$T/names"
	awk -F'\t' '$2 == $3 && $2 != "??" { same++; next }
		$3 == "??" && ($2 ~ /@plt$|\+0x[0-9a-f]+$/ || $2 == "??") { stubs++; next }
		{ print; wrong++ }
		END { printf "%d of %d as addr2line says, %d stubs\n", same, NR, stubs
			exit wrong || same < 1000 }' "$T/names" >"$T/result" ||
		{ tail -20 "$T/result"; fail "$name: the names are not those of addr2line"; }
	echo "$name, seed $seed: $(tail -1 "$T/result"), $(cut -f2 "$T/picked" | sort -u | wc -l) functions"
}

# make_program NAME COMMAND...: build $T/bin/NAME by COMMAND... -o $T/bin/NAME and record it.
make_program() {
	local name=$1
	shift
	mkdir -p "$T/bin"
	"$@" -o "$T/bin/$name" || fail "$name: cannot build"
}

record_one() {
	start_ptd
	record "$1" "$T/bin/$1"
}

# nameless NAME: without its debug file the program's own functions have no names, so what has names with
# it has them from it.
nameless() {
	"$O/tools/names" -n 1200 -s "$seed" "$T/$1" "$T/bin/$1" >"$T/picked" || fail "$1: names"
	cut -f2 "$T/picked" | grep -q '^hash_word$' &&
		fail "$1: has names without its debug file: this proves nothing"
}

debug_path() {
	local id
	id=$(readelf -n "$T/bin/$1" | sed -n 's/.*Build ID: //p')
	echo "${id:0:2}/${id:2}.debug"
}

check_stripped() {
	local by_id
	make_program stripped "${cc[@]}" -no-pie tests/targets/names.c
	cp "$T/bin/stripped" "$T/truth"
	objcopy --only-keep-debug "$T/truth" "$T/symbols" || fail "objcopy"
	strip "$T/bin/stripped" || fail "strip"
	record_one stripped
	nameless stripped

	by_id=$(debug_path stripped)
	mkdir -p "$T/debug/.build-id/${by_id%/*}"
	cp "$T/symbols" "$T/debug/.build-id/$by_id"
	compare stripped "$T/bin/stripped" "$T/truth" -d "$T/debug"
	cp "$T/symbols" "$T/stripped/objects/.build-id/$by_id"
	compare stripped "$T/bin/stripped" "$T/truth"
	drop stripped

	cp "$T/truth" "$T/bin/stripped"
	strip "$T/bin/stripped"
	mkdir "$T/bin/.debug"
	cp "$T/symbols" "$T/bin/.debug/stripped.debug"
	objcopy --add-gnu-debuglink="$T/bin/.debug/stripped.debug" "$T/bin/stripped" || fail "objcopy"
	record_one stripped
	compare stripped "$T/bin/stripped" "$T/truth"
	drop stripped
}

check_program() {
	local name=$1
	shift
	make_program "$name" "$@"
	record_one "$name"
	compare "$name" "$T/bin/$name" "$T/bin/$name"
	drop "$name"
}

if [[ ${1:-} == rust ]]; then
	need rustc
	check_program rust rustc -O -C strip=debuginfo tests/targets/names.rs
	exit
fi
need cc c++
flags=(-O1 -fno-inline -g -pthread)
cc=(cc "${flags[@]}")
check_stripped
check_program pie "${cc[@]}" -fPIE -pie tests/targets/names.c
check_program static "${cc[@]}" -static tests/targets/names.c
check_program c++ c++ "${flags[@]}" tests/targets/throw.cc
