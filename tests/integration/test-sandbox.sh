#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A ptdecode whose decoder tries to get out of its sandbox is refused each time, and decodes as ever.
. "$(dirname "$0")/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "a sanitized build needs ptrace to look for leaks"

start_ptd
record true /bin/true
mkdir "$T/in" "$T/out"
mv "$T/true" "$T/in/snapshot"
echo outside >"$T/outside"

# Whether all that is named after the first argument ended as it says, and nothing else did anything.
refused() {
	local how=$1 name
	shift
	for name; do
		grep -qx "escape: $name: $how" "$T/said" || fail "$name: $(grep "$name:" "$T/said")"
	done
}

escape() {
	OUTSIDE=$T/outside "$O/tools/escape" "$@" -f addresses -o "$T/out/escaped" 2>"$T/said" </dev/null ||
		fail "$*: exit status $?: $(cat "$T/said")"
	cmp -s "$T/out/escaped" "$T/out/plain" || fail "$*: it decoded something else"
	[[ $(cat "$T/outside") == outside && ! -e $T/outside.new ]] || fail "$*: it got out"
	refused "Operation not permitted" socket connect ptrace exec
	refused "Invalid argument" privileges
}

# Without Landlock nothing but the file's own permissions can refuse, and we are root.
"$O/ptdecode" -f addresses -o "$T/out/plain" "$T/in/snapshot"
escape "$T/in/snapshot"
grep -q "read: Permission denied" "$T/said" || skip "this kernel has no Landlock: $(grep read: "$T/said")"
refused "Permission denied" read write truncate remove create rename
cat "$T/said"
echo "all $(wc -l <"$T/said") ways out of a snapshot refused"

# A perf.data file may name objects anywhere, so all can be read; but nothing else.
"$O/ptdecode" -f addresses -o "$T/out/plain" "$T/in/snapshot/data"
escape "$T/in/snapshot/data"
refused "Permission denied" write truncate remove create rename
refused DONE read
echo "$(grep -vc DONE "$T/said") ways out refused of a perf.data file, and reading"
