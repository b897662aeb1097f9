#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The snapshot of `ptctl record` holds what its program did, all of it, and not what another did that
# was recorded before; `ptctl snapshot` holds both.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

start_ptd
record first /bin/true
record second /bin/ls /
record third /bin/true
for name in first second third; do
	"$O/tools/exact" "$T/$name" "$T/$name.log" >"$T/exact" || { cat "$T/exact"; fail "$name"; }
	echo "$name: $(tail -1 "$T/exact")"
	! grep -q gap "$T/exact" || { cat "$T/exact"; fail "$name has gaps"; }
done
"$O/ptctl" snapshot -o "$T/all" >/dev/null 2>&1 || fail "snapshot"
mkdir "$T/logs" && cp "$T"/{first,second,third}.log/* "$T/logs"
"$O/tools/exact" "$T/all" "$T/logs" >"$T/exact" || { cat "$T/exact"; fail "all of them"; }
echo "all: $(tail -1 "$T/exact")"
