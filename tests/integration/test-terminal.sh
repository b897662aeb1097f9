#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A program and a library whose names would speak to a terminal, in the ways that there are: nothing that shows them
# lets a control character out.
. "$(dirname "$0")/common.sh"
need qemu-x86_64

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

for format in text summary sideband; do
	clean "ptdecode -f $format" "$O/ptdecode" -f $format "$T/snapshot"
done
clean "ptdecode's errors" "$O/ptdecode" "$T/missing-$name"
clean "ptdecode's errors" "$O/ptdecode" -f "$name" "$T/snapshot"
clean "ptctl info" "$O/ptctl" info "$id"
clean "ptctl --json info" "$O/ptctl" --json info "$id"
clean "ptctl's errors" "$O/ptctl" record -- "$T/missing-$name"

# Whatever these show.
for verb in list "--json list" status "--json status"; do
	"$O/ptctl" $verb >"$T/listed" 2>&1 || fail "ptctl $verb: $(cat -v "$T/listed")"
	! LC_ALL=C grep -aqP '[^\x20-\x7e\n]' "$T/listed" || fail "ptctl $verb: $(cat -v "$T/listed")"
done

# The names of a drmemtrace directory's files.
"$O/ptdecode" -f drmemtrace -o "$T/traces" "$T/snapshot" || fail "drmemtrace: exit status $?"
[[ -n $(ls "$T/traces/trace") && $(ls "$T/traces/trace") != *[!0-9A-Za-z_.-]* ]] || fail "$(ls -b "$T/traces/trace")"
echo "$(printf %q "$name") is shown as $(grep -ao 'e?\[2J[^ ]*' "$T/shown" | head -n 1)"
