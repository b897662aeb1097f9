#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A ptdecode whose decoder tries to get out of its sandbox is refused each time, and decodes as ever. Every line of
# what tools/escape says is looked at: an attempt that is not named here fails the test if it is DONE.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 script
[[ -z ${PTD_ASAN:-} ]] || skip "a sanitized build needs ptrace to look for leaks"

start_ptd
record true /bin/true
mkdir "$T/in" "$T/out"
mv "$T/true" "$T/in/snapshot"
echo outside >"$T/outside"

# escape ALLOWED INPUT...: decode it to a file and a directory, on a terminal and with a descriptor left open by us. Only
# what the extended regular expression ALLOWED matches may be done. What was said is in $T/said.
escape() {
	local allowed=$1 input status
	shift
	printf -v input '%q ' "$@"
	rm -rf "$T"/out/*
	# The terminal is script's.
	OUTSIDE=$T/outside READABLE=$T/in/snapshot/manifest OUTPUT_DIR=$T/out INHERITED=200 script -qec \
		"$O/tools/escape export addresses --threads 2 $input -o $T/out/escaped --also 'export drmemtrace -o $T/out/traces' 2>$T/said" \
		"$T/terminal" >/dev/null 200>"$T/left-open" </dev/null
	status=$?
	[[ $status == 0 || $status == 3 ]] || fail "$*: exit status $status: $(cat "$T/said")"
	cmp -s "$T/out/escaped" "$T/plain" || fail "$*: it decoded something else"
	[[ $(cat "$T/outside") == outside && ! -e $T/outside.new && ! -s $T/left-open ]] || fail "$*: it got out"
	[[ $(ls -A "$T/out") == $'escaped\ntraces' ]] || fail "$*: it made files: $(ls -A "$T/out")"
	(cd "$T/in/snapshot" && sha256sum --quiet -c SHA256SUMS && [[ -O manifest && ! -x manifest ]]) ||
		fail "$*: it changed its input"
	grep 'DONE$' "$T/said" | grep -vxE "escape: ($allowed): DONE" && fail "$*: it could do that"
	[[ $(grep -cE ': (Operation not permitted|Permission denied|Bad file descriptor|Invalid argument)$' "$T/said") -ge 80 ]] ||
		fail "$*: it did not try: $(cat "$T/said")"
	grep -qx "escape: limit of files: none" "$T/said" && grep -qx "escape: limit of time: none" "$T/said" ||
		fail "$*: it has limits that nobody asked for: $(grep limit "$T/said")"
}

# Whether the attempts that are named ended so.
refused() {
	local how=$1 name
	shift
	for name; do
		grep -qx "escape: $name: $how" "$T/said" || fail "$name: $(grep "$name:" "$T/said")"
	done
}

# A snapshot has what it needs, so nothing but it can be read. Only Landlock can refuse that to root.
"$O/ptdecode" export addresses -o "$T/plain" "$T/in/snapshot"
has_landlock=1
escape "read|read the console|memory of another|environment of another|map a file to execute" "$T/in/snapshot"
if grep -q "read: DONE" "$T/said"; then
	has_landlock=
else
	refused "Permission denied" read "read the console" "memory of another" "environment of another"
fi
refused "Operation not permitted" "create beside the output" "empty by open" "type into the terminal" fork \
	"thread in a namespace" "kill 0" prlimit "prlimit of another" "map to write and execute" "protect to execute" exec socket privileges
# Threads are started by clone, whose flags a filter sees.
refused "Function not implemented" clone3
refused "Bad file descriptor" inherited
refused "Invalid argument" "ask for '../new'" "ask for 'a/../../new'"
# Six times the snapshot, 16 GiB for what lies elsewhere, 16 GiB for temporary files, 1 GiB for the second thread.
size=$(find "$T/in/snapshot" -type f -printf '%s\n' | awk '{ n += $1 } END { printf "%.0f\n", n }')
refused $((6 * size + (33 << 30))) "limit of memory"
echo "all $(wc -l <"$T/said") ways out of a snapshot refused"

# A snapshot may lack files, and name any: only those with a build-id can be read.
printf -- '-\t%s\n' "$T/outside" "$(realpath /bin/true)" >>"$T/in/snapshot/objects.map"
(cd "$T/in/snapshot" && sha256sum -- $(sed 's/^[^ ]*  //' SHA256SUMS) >"$T/sums" && cp "$T/sums" SHA256SUMS)
if [[ $has_landlock ]]; then
	escape "" "$T/in/snapshot"
	refused "Permission denied" read "read the console" "memory of another" "environment of another"
fi

# A perf.data file may name objects anywhere, so all can be read but devices and /proc; nothing else.
"$O/ptdecode" export addresses -o "$T/plain" "$T/in/snapshot/data"
if [[ $has_landlock ]]; then
	escape read "$T/in/snapshot/data"
	refused DONE read
	refused "Permission denied" "read the console" "memory of another" "environment of another"
	echo "$(grep -vc DONE "$T/said") ways out of a perf.data file refused"
fi

# Code that the command line names is foreign, too.
program=$(realpath /bin/true)
printf '\x02\x82%.0s' {1..8} >"$T/pt"
"$O/ptdecode" export addresses -o "$T/plain" --raw-pt "$T/pt" --raw-elf "$program" 2>/dev/null
if [[ $has_landlock ]]; then
	escape "" --raw-pt "$T/pt" --raw-elf "$program"
	refused "Operation not permitted" "write while --raw-elf is parsed"
	refused "Permission denied" read
	echo "$(wc -l <"$T/said") ways out of a bare stream refused"
fi

# System calls of 32-bit code have other numbers.
ESCAPE_BY=int80 "$O/tools/escape" export addresses -o "$T/x" "$T/in/snapshot" 2>"$T/said"
status=$?
[[ $status -gt 128 ]] && ! grep -q DONE "$T/said" || fail "int 0x80: exit status $status: $(cat "$T/said")"

# What the kernel says of one that is at work: it waits for somebody to read what it writes.
status_of() {
	sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status"
}
mkfifo "$T/fifo"
"$O/ptdecode" --max-output 1G --max-spill 2G export addresses "$T/in/snapshot" >"$T/fifo" &
pid=$!
exec 7<"$T/fifo"
is_in_sandbox() { [[ $(status_of Seccomp) == 2 ]]; }
await is_in_sandbox
dac_read_search=0000000000000004
[[ $EUID -eq 0 ]] || dac_read_search=0000000000000000
[[ $(status_of Seccomp) == 2 && $(status_of NoNewPrivs) == 1 && $(status_of CapEff) == "$dac_read_search" &&
	$(status_of CapPrm) == "$dac_read_search" && $(status_of CapInh) == 0000000000000000 &&
	$(status_of CapAmb) == 0000000000000000 ]] || fail "its rights: $(cat "/proc/$pid/status")"
[[ $EUID -ne 0 || $(status_of CapBnd) == 0000000000000000 ]] || fail "rights it can get: $(status_of CapBnd)"
grep -qE "^Max file size +$((2 << 30)) +$((2 << 30)) " "/proc/$pid/limits" || fail "$(cat "/proc/$pid/limits")"
grep -qE "^Max cpu time +unlimited +unlimited " "/proc/$pid/limits" || fail "$(cat "/proc/$pid/limits")"
cat <&7 >"$T/x"
exec 7<&-
wait "$pid" || fail "exit status $?"
"$O/ptdecode" export addresses -o "$T/plain" "$T/in/snapshot"
cmp "$T/x" "$T/plain" || fail "it decoded something else into a pipe"

[[ $has_landlock ]] || skip "this kernel has no Landlock, so what is read is not confined; all else was refused"
