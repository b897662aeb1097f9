# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that run 32-bit programs; they source it after common.sh.

# Headers of the kernel are where those of the 64-bit compiler are.
m32=(-m32 -O2 -g -pthread -idirafter /usr/include/x86_64-linux-gnu)

# need_m32: such programs can be built, run and recorded here.
need_m32() {
	need qemu-i386 "${CC:-cc}"
	echo 'int main(void) { return 0; }' | "${CC:-cc}" "${m32[@]}" -x c -o "$T/m32" - 2>/dev/null ||
		skip "32-bit programs cannot be built: gcc-multilib is not installed"
	"$T/m32" || skip "this kernel does not run 32-bit programs"
}

# build_m32 SOURCE PROGRAM [FLAG]...: of targets/SOURCE.c.
build_m32() {
	local source=$1 program=$2
	shift 2
	"${CC:-cc}" "${m32[@]}" "$@" -o "$program" "tests/targets/$source.c" || fail "cc -m32 $source.c"
}
