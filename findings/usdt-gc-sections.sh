#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What becomes of a static probe (USDT, <sys/sdt.h>) in a function that nobody calls, if unused sections are discarded?
# It goes with its function, one would guess, its note too. It does so with no linker of Debian 12: with ld.bfd the function
# stays, since the note refers to it; with gold the program cannot be linked; and lld discards the function and leaves the
# note, which states the address 0. lld also discards the section .stapsdt.base, by whose address tools find out how far a
# file was moved, so that the notes of the probes that are there state the base 0.
#
# Depended on by: decoder/symbol/stapsdt.c, which leaves out probes at 0, and moves none whose base is 0.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || missing "gcc is not installed"
debian_package lld-14 ld.lld-14 1:14.0.6-12
apt-get download systemtap-sdt-dev=4.8-2 >said 2>&1 || apt-get download systemtap-sdt-dev >said 2>&1 ||
	missing "apt-get download: $(tail -n 1 said)"
echo systemtap-sdt-dev_*.deb
dpkg -x systemtap-sdt-dev_*.deb header
cat >probes.c <<'EOT'
#include <sys/sdt.h>

__attribute__((noinline)) void used(void)
{
	DTRACE_PROBE(app, used);
}

__attribute__((noinline)) void unused(void)
{
	DTRACE_PROBE(app, unused);
}

int main(void)
{
	used();
	return 0;
}
EOT
mkdir linkers
ln -s "$(command -v ld.lld-14)" linkers/ld.lld
gcc --version | head -n 1

# probe LINKER NAME: address and base of that probe, in a program that was linked so.
probe() {
	readelf -nW "$1" | grep -A 1 "Name: $2\$" | sed -nE 's/.*Location: 0x0*([0-9a-f]+), Base: 0x0*([0-9a-f]+),.*/\1 \2/p'
}
include=$(dirname "$(find header -name sdt.h)")/..
refused=
for linker in bfd gold lld; do
	gcc -O1 -ffunction-sections -Wl,--gc-sections -B linkers -fuse-ld=$linker -I "$include" -o $linker probes.c 2>$linker.err ||
		refused+=" $linker"
	[[ -e $linker ]] && said="used at $(probe $linker used); unused at $(probe $linker unused)" || said=$(grep -o 'error: .*' $linker.err | head -n 1)
	echo "$(PATH=linkers:$PATH "ld.$linker" --version | head -n 1): $said"
done
[[ $refused == " gold" ]] || changed "refused by$refused"
[[ $(probe bfd unused) =~ ^[1-9a-f][0-9a-f]*\ [1-9a-f] ]] || changed "ld.bfd keeps no function for its note"
[[ $(probe lld used) =~ ^[1-9a-f][0-9a-f]*\ 0$ && $(probe lld unused) == "0 0" ]] || changed "lld leaves another note"
