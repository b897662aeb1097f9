#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Snapshots at seeded random moments of programs that go on, from rings that wrapped many times: each
# decodes to pieces of what every thread did, nothing is missing between them, and they go up to the
# request. Two are asked for at once. The programs' output is what it is without us.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/live.sh
need qemu-x86_64 python3
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"

N=${N:-1}
echo "seed $SEED, $N moments of each"
pipelines='exec 3<&0; rm -f "$1"
	{ cat <&3 >/dev/null; : >"$1"; } &
	while :; do
		ls -l /usr/bin | sort -k 5 -n | sed -n 9p
		for i in 1 2 3; do seq $i 99 | grep -c "$(echo $i)"; done | tr "\n" " "; echo
		! [ -e "$1" ] || break
	done | sort -u; wait'

echo "--- threads that sleep, migrate and get signals"
moments 3 4 256 SwitchSize=16M "$O/targets/live.c"
echo "--- the same, with switches that wrap before the PT"
moments 3 4 256 "SwitchSize=8K SidebandMax=1M" "$O/targets/live.c"
echo "--- a shell that starts pipelines again and again"
moments 30 2 64 SwitchSize=16M sh -c "$pipelines" sh "$T/over"

if command -v node >/dev/null; then
	echo "--- node's JIT compilers at work"
	mkdir "$T/dumps"
	# Certificates, read at the start, would be most of what runs.
	moments 3 4 256 SwitchSize=16M env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof \
		"$PWD/tests/targets/live.js"
else
	echo "node is not installed: left out"
fi
