#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kernel code, with stock perf as the recorder: all that the guest's CPUs ran, its user code per thread
# and its kernel code per CPU, is what they did, instruction by instruction; the system calls of a
# program are found by the names of kallsyms; and perf lists the same instructions. The kernel has the
# retpolines and the return thunk of a CPU that needs them, which it patches in when it starts; and so do
# programs that also recurse deeply, jump out of it and switch stacks. With ALL=1 it is 50 million
# instructions of the kernel, also without user code, and with ptd as the recorder.
source "$(dirname "$0")/../integration/lib/common.sh"
source tests/integration/lib/perf.sh
set -o pipefail
need perf qemu-system-x86_64 busybox cpio python3 "${CC:-cc}"
tests/guest/kernel.sh "$O" || exit

"${CC:-cc}" -O2 -fcf-protection=full -o "$T/protected" tests/targets/returns.c || fail "cannot compile"
"${CC:-cc}" -O2 -fcf-protection=branch -mindirect-branch=thunk -mfunction-return=thunk -o "$T/thunks" tests/targets/returns.c ||
	{ echo "the compiler has no retpolines: left out"; cp "$T/protected" "$T/thunks"; }
{
	cat tests/guest/recorder.sh
	echo "all=${ALL:-}"
	cat <<'EOF'
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 0 >/proc/sys/kernel/kptr_restrict
grep -H Retpolines /sys/devices/system/cpu/vulnerabilities/spectre_v2 || fail "the kernel has no retpolines"
cat >/root/work <<'EOS'
for round; do
	calls.c >>/out/pids
	protected && thunks || exit
done
EOS
record() { # NUMBER EVENT ROUND...
	local number=$1 event=$2
	shift 2
	echo $number >$softpt/log
	perf record -q -o /out/$number -a --kcore --snapshot=e -m,32M -e $event sh /root/work "$@" || fail "perf $number"
}
record 1 intel_pt// 1 ${all:+2 3}
[ -n "$all" ] || exit 0
record 2 intel_pt/cyc,noretcomp,psb_period=0/k 1

# ptd need not record its own start.
echo 3 >$softpt/log
start_told Trace=all AuxSize=32M SwitchSize=4M $few_mtc
sh /root/work 1
snapshot 3
stop
EOF
} >"$T/script"
# Later words of the command line override earlier ones.
APPEND="mitigations=auto spectre_v2=retpoline indirect_target_selection=force" \
	tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" /usr/bin/perf "$O/ptd" "$O/ptctl" \
	"$O/targets/calls.c" "$T"/{protected,thunks} 2>"$T/err" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

compare() { # NUMBER [ENGINE]...
	for engine in "${@:2}"; do
		"$O/tools/exact" -e $engine "$T/out/$1" "$T/log/$1" >"$T/exact" ||
			{ cat "$T/exact"; fail "recording $1, engine $engine"; }
	done
	echo "recording $1: $(tail -1 "$T/exact")"
}

# Each of its 1000 calls, and those that it made to start and to end.
count() { # PID INPUT
	local calls
	calls=$("$O/ptdecode" text --cpuid-15 1/40 --tid "$1" "$2" | grep -c "  $1/$1 .* entry_SYSCALL_64+0x0 (\[kernel")
	echo "$calls system calls of $1"
	[[ $calls -ge 1000 && $calls -lt 1200 ]] || fail "there should be 1000 and some"
}

# count_thunks LOG RECORDING: how often the kernel came to a thunk, by what the CPUs did. That is no call of a function,
# but for the few that were interrupted in one.
count_thunks() {
	"$O/ptdecode" --cpuid-15 1/40 functions --json -o "$T/functions" "$2" || fail "functions"
	for cpu in 1 2; do "$O/tools/emulog" "$1" 0.$cpu; done | python3 -c '
import array, collections, json, sys
ran = array.array("Q", sys.stdin.buffer.read())
def kind(name):
    return next((k for k in ("__x86_indirect_thunk_", "its_return_thunk") if name.startswith(k)), None)
kinds = {}
for line in open(sys.argv[1]):
    address, _, name = line.split()[:3]
    if kind(name):
        kinds[int(address, 16)] = kind(name)
n = collections.Counter(k for k in map(kinds.get, ran) if k)
listed = sum(f["calls"] for f in json.load(open(sys.argv[2]))["functions"] if kind(f["function"]))
print(f"kernel: {len(ran)} instructions, {dict(n)}, {listed} listed as calls")
if n["__x86_indirect_thunk_"] < 20000 or n["its_return_thunk"] < 200000 or len(ran) < int(sys.argv[3]):
    sys.exit("the kernel ran too little")
if listed > n.total() / 1000:
    sys.exit("thunks are listed as functions")
' "$2/kcore_dir/kallsyms" "$T/functions" $((${ALL:-0} ? 50000000 : 5000000)) || fail "recording $2"
}

compare 1 flow insn
count_thunks "$T/log/1" "$T/out/1"
"$O/tools/cuts" "$T/out/1" || fail "recording 1: cuts"
count "$(sed -n 1p "$T/out/pids")" "$T/out/1"
judge_kernel "recording 1" "$T/out/1"
[[ -n ${ALL:-} ]] || exit 0
compare 2 flow insn
judge_kernel "recording 2" "$T/out/2"
"$O/tools/pieces" "$T/out/3" "$T/log/3" >"$T/pieces" || { cat "$T/pieces"; fail "ptd's snapshot"; }
echo "ptd's snapshot: $(tail -1 "$T/pieces")"
count "$(tail -n 1 "$T/out/pids")" "$T/out/3"
judge_kernel "ptd's snapshot" "$T/out/3"
judged no-times
