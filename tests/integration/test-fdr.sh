#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The log of a program that clang instrumented and XRay recorded, as an input: the calls are those that the program
# logged itself, with their names and source lines; and what export xray makes of them is read like the log.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/xray.sh
need clang++ python3 llvm-xray

cat >"$T/demo.cc" <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

#define CALLS_MAX 100000
#define plain __attribute__((xray_never_instrument, noinline))
#define logged __attribute__((xray_always_instrument, noinline))

/* The truth: what each thread enters (+) and leaves (-). */
struct call { const char *name; char what; };
static __thread struct call *calls;
static __thread int n_calls;
static FILE *truth;
plain static void note(char what, const char *name)
{
	calls[n_calls].name = name;
	calls[n_calls++].what = what;
}
plain static void write_notes(void)
{
	flockfile(truth);
	for (int i = 0; i < n_calls; i++)
		fprintf(truth, "%d %c%s\n", gettid(), calls[i].what, calls[i].name);
	funlockfile(truth);
	free(calls);
}

static volatile unsigned long sum;
extern "C" {
logged void leaf(unsigned long n) { note('+', "leaf"); sum = sum + n; note('-', "leaf"); }
logged void last(unsigned long n) { note('+', "last"); sum = sum ^ n; note('-', "last"); }
logged void jump(unsigned long n)
{
	note('+', "jump");
	leaf(n);
	note('-', "jump");
	[[clang::musttail]] return last(n);
}
logged unsigned long down(unsigned long n)
{
	note('+', "down");
	if (n > 0)
		sum = sum + down(n - 1);
	else
		jump(n);
	note('-', "down");
	return n;
}
}
plain static void *work(void *arg)
{
	calls = static_cast<struct call *>(calloc(CALLS_MAX, sizeof(*calls)));
	for (unsigned long i = 0; i < 1000; i++) {
		leaf(i);
		down(i % 9);
	}
	write_notes();
	return arg;
}

plain int main(int argc, char **argv)
{
	pthread_t threads[3];

	(void)argc;
	truth = fopen(argv[1], "w");
	if (!truth || __xray_log_select_mode("xray-fdr") != XRAY_REGISTRATION_OK ||
	    __xray_log_init_mode("xray-fdr", "buffer_size=16384:buffer_max=1000:func_duration_threshold_us=0") !=
		XRAY_LOG_INITIALIZED || __xray_patch() != SUCCESS)
		return 1;
	for (int i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, work, NULL) != 0)
			return 1;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (__xray_log_finalize() != XRAY_LOG_FINALIZED || __xray_log_flushLog() != XRAY_LOG_FLUSHED)
		return 1;
	return fclose(truth) != 0;
}
END
clang++ -g -O1 -fxray-instrument -pthread -o "$T/demo" "$T/demo.cc" 2>"$T/err" || { cat "$T/err"; skip "clang has no XRay"; }
mkdir "$T/logs"
XRAY_OPTIONS="patch_premain=false xray_logfile_base=$T/logs/xray-log. verbosity=0" "$T/demo" "$T/truth" 2>"$T/err" ||
	{ cat "$T/err"; fail "demo: exit status $?"; }
log=$(echo "$T"/logs/xray-log.*)
[[ -s $log ]] || fail "XRay wrote no log"

"$O/ptdecode" --instr-map "$T/demo" --lines calls --json -o "$T/calls.json" --also "functions --json -o $T/functions.json" --also "export xray -o $T/five" \
	--also "export xray --format-version=1 -o $T/one" "$log" || fail "ptdecode: $?"
python3 - "$T/calls.json" "$T/truth" <<'EOF' || fail "the calls are not those that the program logged"
import collections, json, sys
truth, open_now = collections.defaultdict(list), collections.defaultdict(list)
for line in open(sys.argv[2]):
    tid, what = line.split()
    if what[0] == "+":
        open_now[tid].append(what[1:])
    else:
        truth[int(tid)].append((len(open_now[tid]) - 1, open_now[tid].pop()))
calls = collections.defaultdict(list)
for call in json.load(open(sys.argv[1]))["calls"]:
    calls[call["tid"]].append((call["depth"], call["function"]))
    assert call["file"] == "demo.cc" or call["file"].endswith("/demo.cc"), call
    # Newer versions of clang make a tail call of what another function does last, too.
    assert call["left_by"] in (("tail call",) if call["function"] == "jump" else ("return", "tail call")), call
assert truth == calls, ({t: len(c) for t, c in truth.items()}, {t: len(c) for t, c in calls.items()})
print(f"{sum(map(len, calls.values()))} calls of {len(calls)} threads, as the program logged them")
EOF

# What a log does not say is not guessed: which library has which numbers. A log of basic mode is refused by that name.
printf 'int f(void) { return 1; }\n__attribute__((section("xray_instr_map"))) long map[4] = { 1, 1 };\n' >"$T/library.c"
cc -shared -fPIC -o "$T/library.so" "$T/library.c" || fail "cc"
! "$O/ptdecode" --instr-map "$T/library.so" calls "$log" >"$T/out" 2>&1 && grep -q "library.so: is a library; " "$T/out" ||
	fail "the names of a library: $(cat "$T/out")"
{ printf '\3\0\0\0\377\0\0\0' && head -c 88 /dev/zero; } >"$T/xray-log.basic.abc"
! "$O/ptdecode" calls "$T/xray-log.basic.abc" >"$T/out" 2>&1 && grep -q "is a log of XRay's basic mode" "$T/out" ||
	fail "basic mode: $(cat "$T/out")"

# Each export takes a log.
"$O/ptdecode" --instr-map "$T/demo" export fxt -o "$T/fxt" --also "export chrome -o $T/chrome" \
	--also "export collapsed -o $T/collapsed" --also "export pprof -o $T/pprof" --also "export callgrind -o $T/callgrind" "$log" || fail "exports: $?"
for kind in pprof callgrind; do
	[[ $kind == pprof ]] || command -v callgrind_annotate >/dev/null || continue
	python3 tests/tools/exported.py "$T/calls.json" $kind "$T/$kind" || fail "$kind"
done
python3 - "$T"/{calls.json,chrome} <<'EOF' || fail "the timelines do not have the calls of the log"
import collections, json, sys
calls, chrome = (json.load(open(path)) for path in sys.argv[1:])
names = collections.Counter(call["function"] for call in calls["calls"])
assert names == collections.Counter(event["name"] for event in chrome["traceEvents"]
                                    if event["ph"] == "B" and event["cat"] == "user")
EOF

# The way there and back.
judge_xray "$T/five" "$T/calls.json" "$T/functions.json"
"$O/ptdecode" --instr-map "$T/demo" calls -o "$T/calls" "$log" || fail "ptdecode"
for version in five one; do
	"$O/ptdecode" calls -o "$T/$version.calls" "$T/$version" || fail "$version: ptdecode"
done
# Version 1 has no processes; the names of objects are not in the files.
for name in calls five.calls one.calls; do
	sed 's/ \[[^]]*\]//; /^# thread /d' "$T/$name" | sort >"$T/$name.sorted"
done
for name in five one; do
	cmp -s "$T/calls.sorted" "$T/$name.calls.sorted" ||
		{ diff "$T/calls.sorted" "$T/$name.calls.sorted" | head; fail "$name: what was written is not read back"; }
done

# Without the program, functions have numbers; and what cannot be shown is said.
"$O/ptdecode" functions "$log" | grep -q '  #[1-9][0-9]* (\[xray\])$' || fail "no numbers"
"$O/ptdecode" text "$log" 2>"$T/err"
[[ $? == 1 ]] && grep -q "text shows instructions, and the input has none" "$T/err" || { cat "$T/err"; fail "-f text"; }
"$O/ptdecode" --instr-map "$T/truth" calls "$log" 2>"$T/err"
[[ $? == 1 ]] && grep -q "truth: expected an ELF file with a section xray_instr_map" "$T/err" || { cat "$T/err"; fail "--instr-map"; }

# A part of it.
tid=$(cut -d' ' -f1 "$T/truth" | sort -u | tail -1)
"$O/ptdecode" --tid "$tid" --symbol leaf --instr-map "$T/demo" functions --json "$log" >"$T/part.json" || fail "--tid"
python3 -c 'import json, sys
[leaf] = json.load(open(sys.argv[1]))["functions"]
assert (leaf["function"], leaf["calls"]) == ("leaf", 2000), leaf' "$T/part.json" || fail "--tid"
head -c -100 "$log" >"$T/cut"
"$O/ptdecode" calls "$T/cut" >/dev/null 2>"$T/err"
[[ $? == 3 ]] && grep -q "cut: byte [0-9]*: the file ends inside a" "$T/err" || { cat "$T/err"; fail "a log that is cut off"; }
