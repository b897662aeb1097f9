#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Streams of ovni, of versions 3 and 1: a reader that is written from their document takes them, and finds the calls of
# -f calls. long-ovni.sh asks ovni's emulator, too.
. "$(dirname "$0")/common.sh"
. tests/integration/ovni.sh
need qemu-x86_64 python3

start_ptd
record --timing threads "$O/targets/relay.c" /bin/true
write_ovni threads

# A part of the trace: functions are open before it, and behind it.
from=$(python3 -c 'import json, sys
calls = json.load(open(sys.argv[1]))["calls"]
print("%d.%09d" % divmod(calls[len(calls) // 2]["t"], 10**9))' "$T/threads.calls")
write_ovni threads --time "$from"
