#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Two functions that do the same, but say different things by their static probes (USDT, <sys/sdt.h>), are two functions,
# one would guess, also for a linker that folds identical ones: the probes are what differs. But a probe is a nop, and its
# name stands in a note that refers to the code, not the other way round. gold and lld fold them (--icf=all), and both notes
# state one address: whoever waits for "commit" is told of each "rollback", too.
#
# Depended on by: decoder/probes.c, which says of each execution all probes that are there.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || missing "gcc is not installed"
debian_package lld-14 ld.lld-14 1:14.0.6-12
apt-get download systemtap-sdt-dev=4.8-2 >said 2>&1 || apt-get download systemtap-sdt-dev >said 2>&1 ||
	missing "apt-get download: $(tail -n 1 said)"
echo systemtap-sdt-dev_*.deb
dpkg -x systemtap-sdt-dev_*.deb header
cat >probes.c <<'EOT'
#include <sys/sdt.h>

__attribute__((noinline)) void commit(void)
{
	DTRACE_PROBE(db, commit);
}

__attribute__((noinline)) void rollback(void)
{
	DTRACE_PROBE(db, rollback);
}

int main(void)
{
	commit();
	rollback();
	return 0;
}
EOT
mkdir linkers
ln -s "$(command -v ld.lld-14)" linkers/ld.lld
gcc --version | head -n 1
probe() {
	readelf -nW "$1" | grep -A 1 "Name: $2\$" | sed -nE 's/.*Location: 0x0*([0-9a-f]+),.*/\1/p'
}
for linker in gold lld; do
	for icf in none all; do
		gcc -O1 -ffunction-sections -B linkers -fuse-ld=$linker -Wl,--icf=$icf -I "$(dirname "$(find header -name sdt.h)")/.." \
			-o $linker.$icf probes.c || missing "$linker does not link"
		echo "$(PATH=linkers:$PATH "ld.$linker" --version | head -n 1), --icf=$icf: commit at $(probe $linker.$icf commit), rollback at $(probe $linker.$icf rollback)"
	done
	[[ $(probe $linker.none commit) != "$(probe $linker.none rollback)" ]] || changed "$linker folds them by itself"
	[[ -n $(probe $linker.all commit) && $(probe $linker.all commit) == "$(probe $linker.all rollback)" ]] || changed "$linker does not fold them"
done
