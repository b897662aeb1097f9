#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that the kernel's records say of each thread that it ends, and that a number whose EXIT was
# recorded is gone. A thread that is not its process's first and executes a program takes the process's number: the
# first thread's EXIT stands before the exec, and the number goes on behind it, as the new program's. The old number
# of the one that went on has no EXIT, ever, and no record of a switch says that the thread on this CPU has another
# number from now on.
#
# Depended on by: decoder/sideband/timeline.c, on_exec().
. "$(dirname "$0")/lib.sh"
debian_package linux-perf perf
command -v cc >/dev/null || missing "cc is not installed"
cat >execs.c <<'EOP'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *unused)
{
	(void)unused;
	printf("%d %d\n", getpid(), gettid());
	fflush(stdout);
	execl("/bin/true", "true", NULL);
	return NULL;
}

int main(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL);
}
EOP
cc -pthread -o execs execs.c || changed "it does not compile"
perf --version
uname -sr
perf record -q -e dummy:u -o data ./execs >numbers 2>said || missing "perf record: $(tail -n 1 said)"
read -r process thread <numbers || missing "perf record: $(tail -n 1 said)"
perf script -i data --show-task-events 2>said |
	sed -nE 's/.*PERF_RECORD_(FORK|EXIT|COMM exec|COMM)[ :(]+/\1 /p' >records
echo "process $process, whose second thread is $thread:"
grep -E "^(FORK|EXIT|COMM)" records | sed "s/\b$process\b/PROCESS/g; s/\b$thread\b/THREAD/g"
exits=$(grep -c "^EXIT $process:$process)" records)
last=$(grep -nE "^(EXIT $process:$process\)|COMM exec true)" records | cut -d: -f2 | cut -c 1-4 | tr '\n' ' ')
echo "of the process's number $exits EXIT, of the thread's $(grep -c "^EXIT $process:$thread)" records)"
[[ $last == "EXIT COMM EXIT " ]] || changed "the number does not go on behind its EXIT"
! grep -q "^EXIT $process:$thread)" records || changed "the thread's number has an EXIT"
