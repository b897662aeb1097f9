#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Flight data recorder files for llvm-xray, which judges them: it takes each file without a word, and has the calls,
# times and nesting of calls and the counts of functions of the same recording.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/xray.sh
need qemu-x86_64 "${CC:-cc}" python3 llvm-xray

cat >"$T/calls.c" <<'END'
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static jmp_buf env;
static volatile unsigned long sum;
__attribute__((noipa)) void leaf(unsigned long n) { sum += n; }
__attribute__((noipa)) void last(unsigned long n) { sum ^= n; }
__attribute__((noipa)) void middle(unsigned long n) { leaf(n); last(n + 1); }
__attribute__((noipa)) void first(unsigned long n) { leaf(n); middle(n); }
__attribute__((noipa)) void away(unsigned long n) { leaf(n); longjmp(env, 1); }
static void handle(int number) { leaf((unsigned long)number); }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noipa)) unsigned long down(unsigned long n) { return n ? down(n - 1) + sum : 0; }
static void *work(void *arg)
{
	int numbers[] = { 5, 3, 9, 1 };

	for (unsigned long i = 0; i < 200; i++) {
		first(i);
		qsort(numbers, 4, sizeof(numbers[0]), compare);
		down(i % 20);
	}
	return arg;
}
int main(void)
{
	pthread_t threads[2];

	signal(SIGUSR1, handle);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	for (volatile int i = 0; i < 10; i++)
		if (setjmp(env) == 0)
			away(1);
	raise(SIGUSR1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
END
"${CC:-cc}" -O2 -pthread -o "$T/calls" "$T/calls.c" || fail "cc"

start_ptd
record work "$T/calls"
"$O/ptdecode" export xray -o "$T/five" --also "export xray --format-version=1 -o $T/one" --also "calls --json -o $T/calls.json" \
	--also "functions --json -o $T/functions.json" "$T/work" || fail "ptdecode"
judge_xray "$T/five" "$T/calls.json" "$T/functions.json"
judge_xray "$T/one" "$T/calls.json" "$T/functions.json" 1

# A part of the trace: functions are open before it, and behind it.
from=$(python3 -c 'import json, sys
calls = json.load(open(sys.argv[1]))["calls"]
print("%d.%09d" % divmod([c["t"] for c in calls if c["function"] == "leaf"][100], 10**9))' "$T/calls.json")
"$O/ptdecode" --time "$from" export xray -o "$T/part" --also "calls --json -o $T/calls.json" --also "functions --json -o $T/functions.json" \
	"$T/work" || fail "ptdecode --time"
judge_xray "$T/part" "$T/calls.json" "$T/functions.json"
