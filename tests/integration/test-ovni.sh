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

# read_back NAME [KEY]: what was written is read back: all, or but for KEY.
read_back() {
	"$O/ptdecode" calls --json -o "$T/back.calls" "$T/$1" || fail "$1 is not read"
	python3 - "$T/${1%.*}.calls" "$T/back.calls" "${2:-}" <<'EOF' || fail "$1 is not read back as what was written"
import collections, json, sys
keys = [key for key in ("tid", "function", "t", "duration") if key != sys.argv[3]]
written, back = (collections.Counter(tuple(c[key] for key in keys) for c in json.load(open(name))["calls"])
                 for name in sys.argv[1:3])
assert written == back, (list((written - back).items())[:5], list((back - written).items())[:5])
print(f"{sum(back.values())} calls are read back")
EOF
}
read_back threads.v1
read_back threads.v3
"$O/ptdecode" export ovni -o "$T/inlined.v3" --also "calls --json -o $T/inlined.calls" "$T/threads" || fail "with what was inlined"
# Of what was inlined, it may be known only when the thread goes on that it had ended before, which a stream cannot say.
read_back inlined.v3 duration
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
