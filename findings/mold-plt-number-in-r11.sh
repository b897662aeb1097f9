#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that each stub of a PLT has one of the forms of the psABI, which jump through a slot and push the
# number of a relocation, and that objdump names the stubs of any stripped program "NAME@plt". A stub that mold makes
# loads the number into r11 before it jumps, the section's first entry has 32 bytes instead of 16, and objdump names
# none of these, though the relocations have all the names.
#
# Depended on by: decoder/symbol/plt.c, find_slot().
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || missing "cc is not installed"
command -v objdump >/dev/null || missing "binutils is not installed"
debian_package mold mold 1.10.1+dfsg-1
mold --version
objdump --version | head -n 1
printf '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { return puts(getenv("HOME")) < 0; }\n' >calls.c
cc -c -fno-builtin -fPIE -o calls.o calls.c
# stubs NAME: how many of the program's two calls objdump names, and the form of the last stub.
stubs() {
	readelf -rW "$1" | grep -q JUMP_SLO || changed "$1 has no PLT"
	objdump -d -j .plt --no-show-raw-insn "$1" >"$1.plt"
	echo "$1: $(grep -cE '<(puts|getenv)@plt>:' "$1.plt") of 2 named; the last stub:" \
		$(sed -nE 's/^ +[0-9a-f]+:\t//; s/ +#.*//; /^(endbr64|mov|jmp|push)/p' "$1.plt" | tail -n 3)
}
cc -s -Wl,-z,lazy -o by-ld calls.o
mkdir linkers && ln -s "$(command -v mold)" linkers/ld
cc -B linkers -s -Wl,-z,lazy -o by-mold calls.o || changed "mold does not link"
stubs by-ld | tee said
stubs by-mold | tee -a said
grep -q '^by-ld: 2 of 2 named; .*jmp .*push ' said || changed "ld's stubs"
grep -qE '^by-mold: 0 of 2 named; .*mov \$0x1,%r11d jmp ' said || changed "mold's stubs"
