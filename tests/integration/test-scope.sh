#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The snapshot of one process, on CPUs on which others ran too, holds what it and its descendants did,
# all of it and nothing else. What the others did is out of scope: no gap, and no damage.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

start_ptd Cpus=2
record before ls -l /usr/include
# A shell that outlives its children.
record family sh -c 'ls -l /etc | cat; ls / >/dev/null; true'
record after ls -l /usr/include
mapfile -t threads < <("$O/tools/emulog" "$T/family.log" | cut -d' ' -f1)
[[ ${#threads[@]} -ge 4 ]] || fail "the family has ${#threads[@]} threads"
shell=$(printf '%s\n' "${threads[@]%%.*}" | sort -n | head -1)

"$O/ptctl" snapshot --pid "$shell" -o "$T/scoped" >/dev/null || fail "snapshot --pid $shell"
"$O/ptdecode" summary -o "$T/summary" --also "text -o $T/text" --also "export drmemtrace -o $T/mem" "$T/scoped" 2>"$T/err"
status=$?
sed -n '1,/^Processes/p; /^Gaps/,$p' "$T/summary"
[[ $status -eq 0 && ! -s $T/err ]] || { cat "$T/err"; fail "ptdecode: exit status $status"; }
grep -qx "scope_pid=$shell" "$T/scoped/manifest" || fail "no scope_pid"
pids=$(printf '%s\n' "${threads[@]%%.*}" | sort -nu | paste -sd,)
grep -qx "scope_pids=$pids" "$T/scoped/manifest" ||
	fail "expected the pids $pids: $(grep scope "$T/scoped/manifest")"

grep -qx "Gaps: 0" "$T/summary" || fail "the summary has gaps"
grep -q "^Out of scope: [1-9][0-9]* bytes of PT" "$T/summary" || fail "nothing is out of scope"
! grep -q "^#.* gap: " "$T/text" || { grep -m5 "^#.* gap: " "$T/text"; fail "the text has gaps"; }
"$O/tools/memtrace-check" "$T/mem" >"$T/checked" || fail "the drmemtrace is not valid"
[[ $(ls "$T/mem/trace" | grep -c "^drmemtrace\.") -eq ${#threads[@]} ]] || fail "the drmemtrace has other threads than the family"
# The time is that of the family, not of the rings.
awk '/^Time:/ { t = $2 } END { exit !(t > 0 && t < '"$SECONDS"') }' "$T/summary" || fail "no time"
covered=$(awk '/^Time:/ { print $2 }' "$T/summary")

for engine in flow insn; do
	"$O/tools/exact" -e $engine "$T/scoped" "$T/family.log" >"$T/exact" || { cat "$T/exact"; fail "$engine"; }
	! grep -q gap "$T/exact" || { cat "$T/exact"; fail "$engine: gaps"; }
	echo "$engine: $(tail -1 "$T/exact")"
done

# What others did is passed over without being decoded, unless it is asked for.
"$O/ptdecode" summary --all -o "$T/summary.all" "$T/scoped" || fail "--all: exit status $?"
grep -qx "Gaps: 0" "$T/summary.all" || fail "--all has gaps"
[[ $(grep ^Instructions "$T/summary.all") == "$(grep ^Instructions "$T/summary")" ]] || fail "--all has other instructions of the family"
"$O/ptdecode" text --pid "$shell" -o "$T/text.shell" "$T/scoped" && grep -q "/$shell " "$T/text.shell" && ! grep -v "/$shell \|^#" "$T/text.shell" ||
	fail "--pid $shell shows others"

# Of everybody it is as before, and covers more time.
"$O/ptctl" snapshot -o "$T/all" >/dev/null 2>&1 || fail "snapshot"
"$O/ptdecode" summary -o "$T/summary" "$T/all" || fail "of all: exit status $?"
! grep -q "out of scope" "$T/summary" || fail "something is out of the scope of all"
awk '/^Time:/ { t = $2 } END { exit !(t > '"$covered"') }' "$T/summary" || fail "of all: no more time than $covered s"
