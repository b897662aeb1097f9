#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A static probe (USDT) whose note names a semaphore is one that runs only while somebody has it enabled, one would guess:
# that is what a semaphore is for, and bpftrace and gdb count it up for this. But <sys/sdt.h> puts the address into the note
# of each probe of a provider that dtrace -G or -h made, and the program need not ask it. In PostgreSQL nearly all probes
# have a semaphore that no instruction reads, and are executed whenever control comes there.
#
# Depended on by: decoder/symbol/stapsdt.c, which looks for what reads the semaphore.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/lib/postgresql/15/bin
debian_package postgresql-15 postgres 15.20-0+deb12u1 15.18-0+deb12u1
postgres=$(command -v postgres || ls root/usr/lib/postgresql/15/bin/postgres) || missing "there is no postgres"
command -v objdump >/dev/null || missing "objdump is not installed"
"$postgres" --version 2>/dev/null
readelf -nW "$postgres" | sed -n 's/.*Semaphore: 0x0*\([0-9a-f]*\)$/\1/p' >semaphores
n=$(wc -l <semaphores) n_none=$(grep -c '^$' semaphores)
# The symbols are stripped: objdump says what an operand relative to rip refers to, behind a '#'.
objdump -d --no-show-raw-insn "$postgres" | sed -n 's/.*# \([0-9a-f]*\) .*/\1/p' | sort -u >referred
n_read=$(grep -cxFf referred semaphores)
echo "$n probes, $n_none of them without a semaphore; code refers to the semaphores of $n_read"
[[ $n -ge 70 && $n_none == 0 && $n_read -gt 0 && $n_read -lt $((n / 4)) ]] || changed "those are other numbers"
