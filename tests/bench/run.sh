#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Speed of the decoder, as ratios: ours against peers, both measured in this run on this machine. Programs of at
# least 150 million instructions are recorded by the software source, with and without MTC and CYC packets;
# real traces of ../shared/data are used, too, if they are there, and what the guest (tests/guest) ran, if one can
# be made. compare.py measures, prints, and leaves build/bench.tsv. RUNS is how often each is measured (3), ONLY a
# pattern of inputs (*), README a file whose table is to be replaced. With HEADLINE=yes only what that table shows is
# measured, of the inputs that stand for most.
. "$(dirname "$0")/../integration/lib/common.sh"
need qemu-x86_64 perf python3

cc1=$(gcc -print-prog-name=cc1)
command_of() {
	case $1 in
	python3) cmd=(/usr/bin/python3 -I -S -c 'print(sum(i * i % 7 for i in range(260000)))') ;;
	gcc) cmd=("$cc1" -quiet -O1 -o "$T/out.s" "$T/in.c") ;;
	node) cmd=("$(command -v node)" --perf-prof "$PWD/tests/bench/jit.js") ;;
	short) cmd=(/usr/bin/python3 -I -S -c pass) ;;
	rounds) cmd=("$O/targets/rounds.c" 500000) ;;
	*) cmd=("$O/targets/$1.c") ;;
	esac
}

is_wanted() { # NAME
	[[ $1 == ${ONLY:-*} && (-z ${HEADLINE:-} || $1 == @(python3|python3-cyc|gcc|gcc-cyc|short|mixed)) ]]
}

# The code that a recording of one program mapped, as iptpeer takes it.
code_of() {
	"$O/ptdecode" sideband "$1" |
		sed -nE 's/.*MMAP2? .*\[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x)?([0-9a-f]+).*\]: [r-][w-]x[ps] (\/.*)/\1 \2 \4 \5/p'
}

# seconds CMD...: run it in $T, where node leaves its jitdump; its user CPU time is in $user then.
seconds() {
	local TIMEFORMAT=%U
	(cd "$T" && { time "$@" >/dev/null 2>"$T/err"; } 2>"$T/user") && user=$(cat "$T/user")
}

# take NAME PT-TERMS PROGRAM: record it in $T/NAME. A program with one thread runs on one virtual CPU.
take() {
	is_wanted "$1" || return 0
	command_of "$3"
	start_ptd Cpus=1 AuxSize=1G "PT=$2"
	seconds "$O/ptctl" record -o "$T/$1" -- "${cmd[@]}" || fail "record $1: $(cat "$T/err")"
	recorded=$user
	seconds qemu-x86_64 "${cmd[@]}" || fail "$1: $(cat "$T/err")"
	unrecorded=$user
	seconds qemu-x86_64 -plugin "$O/bench/minimal.so" "${cmd[@]}" || fail "$1, minimal: $(cat "$T/err")"
	echo "$recorded $unrecorded $user" >"$T/$1.record"
	inputs+=("$1")
	# One's code is no file: there is no list of it. The other's is on several CPUs.
	[[ $3 != @(node|rounds) ]] || return
	"$O/tools/auxbytes" "$T/$1" 0 >"$T/$1.pt" 2>/dev/null || fail "$1: no PT"
	code_of "$T/$1" >"$T/$1.code"
}

# real NAME TIMES: a real trace, so many times one after the other.
real() {
	local i at=0 address
	is_wanted "$1" && [[ -d $DATA/$1 ]] || return 0
	for ((i = 0; i < $2; i++)); do
		cat "$DATA/$1/pt.bin"
	done >"$T/$1.pt"
	od -An -v -t x8 -w8 "$DATA/$1/code.addr" | while read -r address; do
		printf '%s 1000 %x %s\n' "$address" $at "$DATA/$1/code.bin"
		at=$((at + 4096))
	done >"$T/$1.code"
	inputs+=("$1")
}

# kernel NAME: the last of all that the guest's CPUs run in some seconds, most of which is code of its kernel. perf and
# ptdecode are given what the guest's CPUID does not say, without which MTC packets would not state the time.
kernel() {
	is_wanted "$1" || return 0
	if ! command -v qemu-system-x86_64 busybox cpio >/dev/null || ! tests/guest/kernel.sh "$O"; then
		echo "$1: left out, because there is no guest here"
		return 0
	fi
	cat >"$T/work" <<-'EOF'
	end=$(($(cut -d. -f1 /proc/uptime) + 10))
	while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do
		find /sys/kernel /proc -maxdepth 3 2>/dev/null | wc -l
		dd if=/dev/zero bs=512 count=5000 2>/dev/null | cat | wc -c
		calls.c
	done
	EOF
	cat tests/guest/recorder.sh - >"$T/script" <<-EOF
	echo 0 >/proc/sys/kernel/kptr_restrict
	start_told Trace=all AuxSize=8M SwitchSize=8M \$few_mtc
	sh "$T/work" >/dev/null &
	sh "$T/work" >/dev/null
	wait \$!
	snapshot kernel
	stop
	EOF
	MEMORY=2048 tests/guest/boot.sh -t 900 -p -o "$T/guest" "$T/script" "$O"/{ptd,ptctl,targets/calls.c} "$T/work" \
		2>"$T/err" || fail "$1: $(tail -3 "$T/err")"
	mv "$T/guest/kernel" "$T/$1"
	"$O/tools/reshape" ctc=40 "$T/$1/data" "$T/data" || fail "$1: reshape"
	mv "$T/data" "$T/$1/data"
	rm "$T/$1"/{manifest,SHA256SUMS} # which are of the other data
	inputs+=("$1")
}

# mixed NAME: a snapshot of a CPU that one program shared with another one, of which only the first is asked for.
mixed() {
	local others
	is_wanted "$1" || return 0
	start_ptd Cpus=1 AuxSize=256M PT=psb_period=1
	command_of python3
	"$O/ptctl" record -o "$T/$1.others" -- "${cmd[@]}" >/dev/null 2>&1 &
	others=$!
	command_of short
	"$O/ptctl" record -o "$T/$1.own" -- "${cmd[@]}" >/dev/null 2>&1 || fail "$1: record"
	wait "$others" || fail "$1: the other program"
	"$O/ptctl" snapshot -o "$T/$1" >/dev/null || fail "$1: snapshot"
	sed -n 's/^command_pid=//p' "$T/$1.own/manifest" >"$T/$1.pid"
	inputs+=("$1")
}

gcc -E -I. -Iinclude -D_GNU_SOURCE -DPTD_VERSION='""' decoder/pt/packet.c >"$T/in.c" || fail "gcc -E"
inputs=()
for program in python3 gcc branchy numeric node; do
	take $program psb_period=1 $program
	take $program-cyc mtc=1,cyc=1 $program
done
take short psb_period=1 short
mixed mixed
# Ten million calls.
take rounds mtc=1,cyc=1 rounds
stop_ptd
real mruby 16
real foo 600
real hello 400
kernel kernel
[[ ${#inputs[@]} -gt 0 ]] || fail "no input is called ${ONLY:-*}"
python3 tests/bench/compare.py --build "$O" --dir "$T" --runs "${RUNS:-3}" --tsv "$O/bench.tsv" \
	${HEADLINE:+--headline} ${README:+--readme "$README"} "${inputs[@]}"
