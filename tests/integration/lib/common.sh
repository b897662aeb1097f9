# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the integration scripts share; they source it. It makes a temporary directory $T and removes
# it at exit, with everything that was started.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
export O PYTHONDONTWRITEBYTECODE=1
O=$(realpath "${O:-build}")
# Where the system's emulator loads no plugins, this one does.
PATH=$O/qemu:$PATH
DATA=$(realpath -q ../shared/data || true)
T=$(mktemp -d "${TMPDIR:-/tmp}/ptd-test-XXXXXX")
ptd_pid=

finish() {
	[[ -z $ptd_pid ]] || { kill "$ptd_pid" && wait "$ptd_pid"; } 2>/dev/null
	rm -rf "$T"
}
trap finish EXIT

skip() {
	echo "SKIP: $*"
	exit 77
}

fail() {
	echo "FAIL: $*" >&2
	exit 1
}

# After that, what a test waits for does not come any more, however busy the machine is.
HUNG_S=300

# await CMD...: wait until the command succeeds. Returns 1 if it never does.
await() {
	local end=$((SECONDS + HUNG_S))
	until "$@" >/dev/null 2>&1; do
		[[ $SECONDS -lt $end ]] || return 1
		sleep 0.05
	done
}

need() {
	local what
	for what; do
		command -v "$what" >/dev/null || skip "$what is not installed"
	done
}

# Does libipt read ahead, as 2.1 and newer do? Then engine insn lists what it does, at other times.
ipt_reads_ahead() {
	[[ $(readlink -f "$(ldd "$O/ptdecode" | awk '/libipt/ { print $3 }')") != *.so.2.0.* ]]
}

# exec_as_user UID[:GROUP] CMD...: become that command of that user, with that other group, or with none. In the
# background, $! is the command's.
exec_as_user() {
	local groups=(--clear-groups)
	[[ $1 != *:* ]] || groups=(--groups "${1#*:}")
	exec setpriv --reuid "${1%:*}" --regid "${1%:*}" "${groups[@]}" "${@:2}"
}

# as_user UID[:GROUP] CMD...: the same, and wait for it.
as_user() { (exec_as_user "$@"); }

# start_ptd [LINE-OF-CONFIG]...: a recorder of its own, with large rings so that whole programs fit. It takes
# nothing over from the one before, unless the test says KeepRings=.
start_ptd() {
	stop_ptd
	printf '%s\n' '[Recorder]' Source=emu Cpus=4 AuxSize=256M SwitchSize=16M \
		MaxUse=1T KeepFree=0 KeepRings=0 "$@" >"$T/ptd.conf"
	: >"$T/ptd.log"
	launch_ptd
}

ptd_answers_or_ended() {
	"$O/ptctl" status || ! kill -0 "$ptd_pid"
}

# launch_ptd: a recorder with the settings of the last one.
launch_ptd() {
	"$O/ptd" --runtime-dir "$T/run" --state-dir "$T/state" --config "$T/ptd.conf" 2>>"$T/ptd.log" &
	ptd_pid=$!
	export PTD_SOCKET=$T/run/control
	await ptd_answers_or_ended && "$O/ptctl" status >/dev/null 2>&1 && return
	cat "$T/ptd.log" >&2
	fail "ptd does not answer"
}

stop_ptd() {
	[[ -n $ptd_pid ]] || return 0
	kill "$ptd_pid" && wait "$ptd_pid"
	ptd_pid=
}

# each_engine COMMAND...: run it with each engine as its last argument, side by side, and print what they
# print one after the other. If one of them fails, the test does.
each_engine() {
	local engine pids=() status=0
	for engine in flow insn; do
		("$@" "$engine") >"$T/said.$engine" 2>&1 &
		pids+=($!)
	done
	for engine in flow insn; do
		wait "${pids[0]}" || status=1
		pids=("${pids[@]:1}")
		cat "$T/said.$engine"
	done
	[[ $status == 0 ]] || exit 1
}

# record [--timing] NAME CMD...: run it, leave the snapshot in $T/NAME and the ground truth in $T/NAME.log.
# The program's output goes to $T/NAME.out.
record() {
	local name timing=
	[[ $1 != --timing ]] || { timing=$1; shift; }
	name=$1
	shift
	mkdir "$T/$name.log"
	PTD_EMU_LOG=$T/$name.log "$O/ptctl" record $timing -o "$T/$name" -- "$@" >"$T/$name.out" 2>"$T/$name.err" ||
		{ tail -n 20 "$T/$name.err" "$T/ptd.log" >&2; fail "record $*: exit status $?"; }
	recorded "$name"
}

# recorded NAME: in long runs perf judges each recording, but for large ones, and those of code that is in
# no file.
recorded() {
	[[ -n ${PTD_LONG:-} && -z ${PTD_ASAN:-} && $0 != *-perf.sh ]] && command -v perf >/dev/null || return 0
	[[ $(stat -c %s "$T/$1/data") -lt 400000 && $1 != @(patch|jit|live|ran) ]] || return 0
	(. tests/integration/lib/perf.sh && judge "$1" "$T/$1") || exit 1
}

drop() {
	rm -rf "$T/$1" "$T/$1".*
	rm -rf "$T"/state/snapshots/*
}
