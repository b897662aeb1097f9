#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Streams of ovni, of versions 3 and 1: a reader that is written from their document takes them, and finds the calls of
# calls; read as an input, they are these calls, too. long-ovni.sh asks ovni's emulator.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/ovni.sh
need qemu-x86_64 python3

start_ptd
record --timing threads "$O/targets/relay.c" /bin/true
write_ovni threads

# What was written is read back.
for version in 1 3; do
	"$O/ptdecode" calls --json -o "$T/back.calls" "$T/threads.v$version" || fail "version $version is not read"
	python3 - "$T/threads.calls" "$T/back.calls" <<'EOF' || fail "version $version is not read back as what was written"
import collections, json, sys
written, back = (collections.Counter((c["tid"], c["function"], c["t"], c["duration"]) for c in json.load(open(name))["calls"])
                 for name in sys.argv[1:])
assert written == back, (list((written - back).items())[:5], list((back - written).items())[:5])
print(f"{sum(back.values())} calls are read back")
EOF
done
"$O/ptdecode" export fxt -o "$T/fxt" --also 'functions' "$T/threads.v3/ovni/loom.ptd" | grep -q '(\[ovni\])$' || fail "functions of a loom"
"$O/ptdecode" text "$T/threads.v3" 2>"$T/err"
[[ $? == 1 ]] && grep -q "text shows instructions, and the input has none" "$T/err" || { cat "$T/err"; fail "text"; }
stream=$(find "$T/threads.v3" -name stream.obs | head -1)
truncate -s -5 "$stream"
"$O/ptdecode" calls -o "$T/cut" "$T/threads.v3" 2>"$T/err"
[[ $? == 3 ]] && grep -q "stream.obs: byte [0-9]*: the file ends inside an event" "$T/err" || { cat "$T/err"; fail "a stream that is cut off"; }

# A part of the trace: functions are open before it, and behind it.
from=$(python3 -c 'import json, sys
calls = json.load(open(sys.argv[1]))["calls"]
print("%d.%09d" % divmod(calls[len(calls) // 2]["t"], 10**9))' "$T/threads.calls")
write_ovni threads --time "$from"
