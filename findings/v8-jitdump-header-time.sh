#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that the time in the head of a jitdump is of the clock of its records, and could serve as a
# base for them. V8's records have CLOCK_MONOTONIC in ns, and its head has the time of day in µs.
#
# Depended on by: decoder/jit/jitdump.h, which takes no time from the head.
. "$(dirname "$0")/lib.sh"
command -v node >/dev/null || missing "node is not installed"
echo "node $(node --version)"
node --perf-prof -e 'let s = 0; for (let i = 0; i < 1e6; i++) s ^= i; console.log(s)' >/dev/null
jitdump jit-*.dump >records
python3 - <<'EOT'
import time, sys
head, *records = [l.split() for l in open("records")]
now = {"time of day": time.time_ns(), "CLOCK_MONOTONIC": time.monotonic_ns()}
stamp, first = int(head[2]), int(records[0][2])
print("head: %d, which is %.1f s of the time of day ago if it is in us" % (stamp, (now["time of day"] - stamp * 1000) / 1e9))
print("first record: %d, which is %.1f s of CLOCK_MONOTONIC ago if it is in ns" % (first, (now["CLOCK_MONOTONIC"] - first) / 1e9))
near = lambda ago: 0 <= ago < 120e9
sys.exit(not (near(now["time of day"] - stamp * 1000) and near(now["CLOCK_MONOTONIC"] - first)))
EOT
[[ $? == 0 ]] || changed "the head or the records have another clock"
