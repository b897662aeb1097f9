#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that perf record -a in a container, whose PID namespace does not have the processes outside, leaves
# their records out, or has -1 for their numbers. It has all their records, and all their numbers are 0: they are the
# idle thread's, which seems to execute programs, to fork, to exit, and to map their files.
#
# Depended on by: decoder/sideband/task.c, meet_outside().
. "$(dirname "$0")/lib.sh"
debian_package linux-perf perf
command -v unshare >/dev/null || missing "util-linux is not installed"
perf --version
uname -sr
mkfifo ready go
# In the namespace: record while true is executed once in it, as process 2 or later, and once outside.
cat >inside.sh <<'EOP'
exec perf record -q -a --switch-events -e dummy:u -o data -- sh -c 'echo >ready; read -r line <go; /bin/true; exit'
EOP
unshare --pid --fork --mount-proc bash inside.sh >said 2>&1 &
inside=$!
for ((i = 0; i < 300; i++)); do
	kill -0 $inside 2>/dev/null || missing "perf record: $(tail -n 1 said)"
	! read -r -t 0.1 <>ready || break
done
/bin/true &
outside=$!
wait $outside
echo >go
wait $inside || missing "perf record: $(tail -n 1 said)"
perf script -i data --show-task-events --show-mmap-events 2>said | grep -E 'PERF_RECORD_(COMM exec: true|MMAP2 .*bin/true)' |
	sed 's/.*PERF_RECORD_//' >records
echo "outside it was process $outside:"
cat records
grep -q '^COMM exec: true:0/0$' records || changed "the process outside has no exec, or another number"
grep -q '^MMAP2 0/0: .*/true$' records || changed "the process outside maps nothing, or has another number"
grep -qE '^COMM exec: true:([1-9][0-9]*)/\1$' records || changed "the process inside has no number"
! grep -q "true:$outside/" records || changed "its number is in the records"
