#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a library that is loaded before libc, and has a siglongjmp() of its own, sees each call of it. It
# sees those of a program that is compiled plainly. With _FORTIFY_SOURCE, as Debian compiles its packages, siglongjmp(),
# longjmp() and _longjmp() are calls of __longjmp_chk(), and nothing is seen; Debian's qemu-x86_64 imports both names, and
# leaves translated code by the second one.
#
# Depended on by: daemon/plugin/plugin.c, which replaces both in QEMU.
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || missing "cc is not installed"
debian_package qemu-user qemu-x86_64 1:7.2+dfsg-7+deb12u18 1:7.2+dfsg-7+deb12u18+b3
cat >jumps.c <<'EOT'
#include <setjmp.h>

static sigjmp_buf back;

int main(void)
{
	volatile int n = 0;

	(void)sigsetjmp(back, 1);
	if (n++ < 1000)
		siglongjmp(back, 1);
	return 0;
}
EOT
cat >seen.c <<'EOT'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static unsigned n;

void siglongjmp(void *buf, int value)
{
	void (*next)(void *, int) = (void (*)(void *, int))dlsym(RTLD_NEXT, "siglongjmp");

	n++;
	next(buf, value);
}

__attribute__((__destructor__)) static void tell(void)
{
	printf("%u\n", n);
}
EOT
cc -O2 -w -shared -fPIC -o seen.so seen.c || missing "cc does not work"
cc -O2 -w -U_FORTIFY_SOURCE -o plain jumps.c
cc -O2 -w -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -o fortified jumps.c
plain=$(LD_PRELOAD=$PWD/seen.so ./plain) fortified=$(LD_PRELOAD=$PWD/seen.so ./fortified)
cc --version | head -n 1
getconf GNU_LIBC_VERSION
echo "1000 calls of siglongjmp(): seen of a plain program $plain, of a fortified one $fortified"
[[ $plain == 1000 && $fortified == 0 ]] || changed "that was other calls"
imports=$(readelf -W --dyn-syms "$(command -v qemu-x86_64)" | grep -oE '__longjmp_chk|siglongjmp' | sort -u | paste -sd' ')
echo "qemu-x86_64 imports: $imports"
[[ $imports == "__longjmp_chk siglongjmp" ]] || changed "qemu-x86_64 imports others"
