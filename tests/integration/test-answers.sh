#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The jobs for which people come, each with the commands that ptdecode(1) has for it: a crash, a request that took
# long, threads that wait for each other, and two runs of which one took another way.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 addr2line python3

# example TEXT: that the manual has this command.
example() {
	grep -qF -- "$1" decoder/ptdecode.1 || fail "ptdecode(1) does not have: $1"
}

# has FILE PATTERN...: lines that match the patterns stand in this order.
has() {
	local file=$1 line=0 next
	shift
	for pattern; do
		next=$(tail -n +$((line + 1)) "$file" | grep -nE -m1 -- "$pattern" | cut -d: -f1)
		[[ -n $next ]] || { cat "$file"; fail "no line, or none behind line $line: $pattern"; }
		line=$((line + next))
	done
}

# line_of TARGET PATTERN: the number of the last line that matches
line_of() {
	sed -n "/$2/=" "tests/targets/$1.c" | tail -1
}

records=$O/targets/records.c
printf 'v 1\nv 2\nv 3\nv 4\n' >"$T/good.txt"
printf 'v 1\nv 2\nx 3\nv 4\n' >"$T/other.txt"
printf 'v 1\nv 2\np 5\nv 4\n' >"$T/crash.txt" # the instruction that fails never ran before
start_ptd

echo "--- a crash"
example "ptdecode crash latest"
"$O/ptctl" record -o "$T/crash" -- "$records" "$T/crash.txt" 2>"$T/err"
[[ $? == 139 ]] || fail "the program did not crash: $(cat "$T/err")"
"$O/ptdecode" sideband "$T/crash" | grep -q 'EXIT.* signal: 11$' || fail "no signal among the records"
"$O/ptdecode" --state-dir "$T/state" crash latest >"$T/text" || fail "crash: status $?"
has "$T/text" '^Threads killed by a signal: 1$' '^Thread [0-9]+/[0-9]+ records.c: killed by signal 11 \(SIGSEGV\)' \
	'^Not executed any more: [0-9a-f]+ follow_record[.a-z0-9]*\+0x[0-9a-f]+ \(.*/records.c\): .*\(%r' \
	"^Source: follow_record at .*/tests/targets/records.c:$(line_of records 'the crash')" \
	'^Backtrace:$' "#0 .* follow_record.* at .*/records.c:$(line_of records 'the crash')\$" \
	"#1 .* check_record.* at .*/records.c:$(line_of records 'return follow_record')\$" \
	"#2 .* main .* at .*/records.c:$(line_of records 'sum += check_record')\$" '^Last branches taken: 30$'
"$O/ptdecode" crash --json "$T/crash" >"$T/json" || fail "crash --json: status $?"
line=$(python3 - "$T/json" "$records" <<'END'
import json, subprocess, sys
[thread] = json.load(open(sys.argv[1]))["threads"]
assert thread["signal"] == 11 and not thread["executed"] and len(thread["branches"]) == 30
print(subprocess.check_output(["addr2line", "-e", sys.argv[2], thread["at"]["address"]], text=True).split()[0])
END
) || fail "$(cat "$T/json")"
sed -n "${line##*:}p" tests/targets/records.c | grep -q '/\* the crash \*/' || fail "it crashed at $line"
echo "$(grep '^Thread ' "$T/text"), at ${line##*/}"

echo "--- a crash of which there are the core file and the last 20 instructions"
example "ptdecode crash --core /tmp/core latest"
mkdir "$T/cores"
# ASan would forbid core files to whatever it starts.
(cd "$T/cores" && ulimit -c 32768 && ASAN_OPTIONS=${ASAN_OPTIONS:-}:disable_coredump=0 "$O/ptctl" record -o "$T/cored" -- "$records" "$T/crash.txt" 2>"$T/err")
core=$(echo "$T"/cores/qemu_records.c_*.core)
[[ -s $core ]] || fail "QEMU wrote no core file: $(cat "$T/err")"
"$O/ptdecode" crash --core "$core" --last 20 "$T/cored" >"$T/text" || fail "crash --core: status $?"
has "$T/text" '^Threads killed by a signal: 1$' ': killed by signal 11 \(SIGSEGV\) at [0-9.]+' \
	'^Not executed any more: [0-9a-f]+ follow_record[.a-z0-9]*\+0x' '^Backtrace:$' '#0 .* follow_record' \
	"#1 .* check_record .* at .*:$(line_of records 'return follow_record') // from the core file" '#2 .* main .*core file' \
	'_start .* // from the core file$' '^Last branches taken: '
grep -q 'unknown above' "$T/text" && { cat "$T/text"; fail "not all is known"; }
"$O/ptdecode" crash --json --core "$core" "$T/cored" >"$T/json" || fail "crash --json --core: status $?"
python3 - "$T/json" "$core" "$records" <<'END' || { cat "$T/json"; fail "the core file's stack"; }
import json, re, shutil, subprocess, sys
[thread] = json.load(open(sys.argv[1]))["threads"]
assert thread["took_signal"] and not thread["core_differs"] and thread["complete"], thread
ours = [int(frame["ip"], 16) for frame in thread["frames"]]
if not shutil.which("eu-stack"):
    sys.exit(print("eu-stack is missing: elfutils"))
said = subprocess.run(["eu-stack", "--core=" + sys.argv[2], "-e", sys.argv[3]], capture_output=True, text=True).stdout
assert [int(ip, 16) for ip in re.findall(r"^#\d+ +(0x[0-9a-f]+)", said, re.M)] == ours, (said, ours)
print(len(ours), "functions, as eu-stack has them")
END
"$O/ptdecode" crash --core "$records" "$T/cored" >/dev/null 2>"$T/err"
[[ $? == 1 ]] && grep -q "records.c: is no core file" "$T/err" || fail "a program is taken for a core file: $(cat "$T/err")"
rm -r "$T/cores"

echo "--- a request of 2000 that takes long"
example "ptdecode latency --function=handle_request latest"
"$O/ptctl" record --timing -- "$O/targets/requests.c" >/dev/null 2>"$T/err" || fail "$(cat "$T/err")"
"$O/ptdecode" --state-dir "$T/state" latency --function=handle_request --json latest >"$T/json" || fail "latency: $?"
python3 - "$T/json" <<'END' || { head -c 3000 "$T/json"; fail "another request is said to be the slowest"; }
import json, sys
latency = json.load(open(sys.argv[1]))
assert latency["executions"] == 2000, latency["executions"]
slowest = latency["slowest"][0]
assert slowest["number"] == 731 and latency["functions"][0]["function"] == "grow_table", slowest
print(f"request {slowest['number']}: {slowest['duration']} ns, {slowest['instructions']} instructions")
END

example "ptdecode diff --function=handle_request --b=731 latest"
"$O/ptdecode" --state-dir "$T/state" diff --function=handle_request --b=731 latest >"$T/text" || fail "diff: status $?"
has "$T/text" '^A: .*, execution 1 of handle_request: [0-9]+ instructions' '^Threads that differ: 1$' \
	'^    Then, behind .* handle_request\+.*: j' '^    Backtrace: handle_request <- main <- ' ' 10  grow_table \('
grep 'Then, behind' "$T/text"

echo "--- threads that wait for each other"
example "ptdecode stacks latest"
"$O/ptctl" record -- "$O/targets/deadlock.c" >"$T/out" 2>&1 &
recorded=$!
await grep -q deadlocked "$T/out"
"$O/ptctl" snapshot >"$T/id" 2>"$T/err" || fail "$(cat "$T/err")"
kill -KILL "$(pgrep -P $recorded)" && wait $recorded 2>/dev/null
"$O/ptdecode" --state-dir "$T/state" stacks "$(cat "$T/id")" >"$T/text" || fail "stacks: status $?"
for pair in "write_journal transfer journal" "lock_accounts audit accounts"; do
	set -- $pair
	sed -n "/^Thread/{x;/$1/p;d}; H; \${x;/$1/p}" "$T/text" >"$T/thread"
	has "$T/thread" '^Thread .*in a system call' 'lll_lock_wait|pthread_mutex_lock' \
		" $1 .* at .*/deadlock.c:$(sed -n "/void $1/,/_lock(/{/_lock(/=}" tests/targets/deadlock.c)\$" \
		" $2 .* at .*/deadlock.c:$(line_of deadlock "^	$1();")\$"
done
grep '^Thread ' "$T/text"

echo "--- two runs that differ by a byte"
example "ptdecode diff good bad"
# Names of equal length: the environment lies on the stack, and code that compares texts looks at their alignment.
record good "$records" "$T/good.txt"
record twin "$records" "$T/good.txt"
cp "$T/other.txt" "$T/good.txt" # the same command
record evil "$records" "$T/good.txt"
"$O/ptdecode" diff "$T/good" "$T/twin" >"$T/same" || fail "diff: status $?"
has "$T/same" '^Threads that are the same: 1$' '^Threads that differ: 0$' '^Functions that differ: 0$'
"$O/ptdecode" diff "$T/good" "$T/evil" >"$T/text" || fail "diff: status $?"
has "$T/text" '^Threads that differ: 1$' '^    Then, behind .* check_record\+0x[0-9a-f]+ .*: jn?z' \
	'^    A at .* check_record\+' '^    B at .* check_record\+' '^    Backtrace: check_record <- main <- ' \
	'^    They go on alike behind [0-9]+ instructions? of A and [0-9]+ of B$' \
	'^    More differences up to the end: [0-9]+; in all, [0-9]+ instructions? of A and [0-9]+ of B differ$' \
	'^Functions that differ: [1-9]'
grep 'Then, behind' "$T/text"
