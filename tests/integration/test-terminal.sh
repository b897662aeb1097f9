#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program and a library whose names would speak to a terminal, in the ways that there are: nothing that shows them
# lets a control character out. And what takes longer than a second says there how far it has come.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 script

# CSI as ESC [, as one byte, and in UTF-8; OSC; NEL; DEL.
name=$'e\e[2J\x9b2J\xc2\x9b2J\xc2\x9dt\xc2\x85\x7f\x80z'
cp /bin/true "$T/$name"
start_ptd
record snapshot "$T/$name"
"$O/ptctl" record -- "$T/$name" >"$T/ran" 2>&1 || fail "record: $(cat -v "$T/ran")"
id=$("$O/ptctl" list | tail -n 1 | cut -d' ' -f1)
printf 'note=%s\n' "$name" >>"$T/state/snapshots/$id/manifest"

# clean WHAT COMMAND...: its output, which may be errors, has no such character, but it has the name.
clean() {
	local what=$1
	shift
	"$@" >"$T/shown" 2>&1
	grep -aqE 'e([?]\[2J|\\u001b)' "$T/shown" || fail "$what does not show the name: $(head -c 2000 "$T/shown" | cat -v)"
	! LC_ALL=C grep -aqP '[^\x20-\x7e\n]' "$T/shown" ||
		fail "$what: $(LC_ALL=C grep -aP '[^\x20-\x7e\n]' "$T/shown" | head -n 1 | cat -v)"
}

for verb in text summary sideband; do
	clean "ptdecode $verb" "$O/ptdecode" $verb "$T/snapshot"
done
clean "ptdecode's errors" "$O/ptdecode" text "$T/missing-$name"
clean "ptdecode's errors" "$O/ptdecode" "$name" "$T/snapshot"
clean "ptctl info" "$O/ptctl" info "$id"
clean "ptctl --json info" "$O/ptctl" --json info "$id"
clean "ptctl's errors" "$O/ptctl" record -- "$T/missing-$name"

# Whatever these show.
for verb in list "--json list" status "--json status"; do
	"$O/ptctl" $verb >"$T/listed" 2>&1 || fail "ptctl $verb: $(cat -v "$T/listed")"
	! LC_ALL=C grep -aqP '[^\x20-\x7e\n]' "$T/listed" || fail "ptctl $verb: $(cat -v "$T/listed")"
done

# The names of a drmemtrace directory's files.
"$O/ptdecode" export drmemtrace -o "$T/traces" "$T/snapshot" || fail "drmemtrace: exit status $?"
[[ -n $(ls "$T/traces/trace") && $(ls "$T/traces/trace") != *[!0-9A-Za-z_.$'\n'-]* ]] || fail "$(ls -b "$T/traces/trace")"
echo "$(printf %q "$name") is shown as $(grep -ao 'e?\[2J[^ ]*' "$T/shown" | head -n 1)"

# on_terminal COMMAND: what it shows on one.
on_terminal() {
	script -qec "$1" /dev/null </dev/null 2>&1
}

# The reference is slow enough.
[[ -z ${PTD_ASAN:-} ]] || exit 0
record long /usr/bin/python3 -I -S -c 'print(sum(i * i % 7 for i in range(20000)))'
for output in "summary" "text >/dev/null"; do
	on_terminal "$O/ptdecode -e insn --threads 1 $output $T/long" >"$T/shown"
	grep -aqE $'\rptdecode: +[0-9]+ % of [0-9.]+ MiB (of PT decoded|read)' "$T/shown" ||
		fail "$output: no progress: $(head -c 300 "$T/shown" | cat -v)"
	grep -aqE $'\r\e\\[K' "$T/shown" || fail "$output: the progress stays"
done
echo "progress: $(tr '\r' '\n' <"$T/shown" | grep -a MiB | head -n 1 | cat -v)"
