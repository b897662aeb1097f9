#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a program under qemu-user has its mappings in the process where it says that it has them, as
# programs of 64 bits do: /proc/PID/maps from outside and /proc/self/maps from inside would agree. A program of 32 bits
# lies higher in the process, by whatever vm.mmap_min_addr is (4096 or 65536 as a rule), because QEMU lets it have
# address 0; and the maps that it reads are QEMU's. Only where anybody may map address 0 do the two agree.
#
# Depended on by: daemon/proc/mappedfile.h, which looks for a jitdump at other addresses than the program's, too.
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || missing "cc is not installed"
debian_package qemu-user qemu-i386 1:7.2+dfsg-7+deb12u18 1:7.2+dfsg-7+deb12u18+b3
cat >own.c <<'EOT'
static int call(int n, int a, const void *b, int c)
{
	int r;

	__asm__ volatile("int $0x80" : "=a"(r) : "a"(n), "b"(a), "c"(b), "d"(c) : "memory");
	return r;
}

/* Prints its maps, and waits. */
void _start(void)
{
	static char text[4096];
	const int fd = call(5, (int)"/proc/self/maps", 0, 0);
	int n;

	while ((n = call(3, fd, text, sizeof(text))) > 0)
		call(4, 1, text, n);
	call(29, 0, 0, 0);
}
EOT
cc -m32 -O1 -static -nostdlib -fno-pie -no-pie -fno-stack-protector -w -o own own.c || missing "cc makes no programs of 32 bits"
qemu-i386 ./own >inside &
pid=$!
until grep -q '\[stack\]' inside; do
	kill -0 $pid 2>/dev/null || changed "it does not run"
	sleep 0.1
done
grep '/own$' "/proc/$pid/maps" >outside
kill $pid
least=$(cat /proc/sys/vm/mmap_min_addr)
inside=$((16#$(sed -n '/\/own$/{s/-.*//p;q}' inside))) outside=$((16#$(sed -n '1s/-.*//p' outside)))
qemu-i386 --version | head -n 1
printf 'the program says %#x, the process has it at %#x; vm.mmap_min_addr is %d\n' $inside $outside "$least"
[[ $((outside - inside)) == "$least" ]] || changed "they differ by $((outside - inside))"
