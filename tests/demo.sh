#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What `make demo` shows: a recorder in a temporary directory, a real program, a snapshot over the
# control socket, and what is in it. Nothing of the system is touched; nothing is left running.
set -eu
O=$(realpath "$1")
T=$(mktemp -d "${TMPDIR:-/tmp}/ptd-demo-XXXXXX")
ptd=
trap '[[ -z $ptd ]] || { kill $ptd; wait $ptd; } 2>/dev/null' EXIT

say() {
	printf '\n\033[1m== %s\033[0m\n' "$*"
}

say "Starting ptd in $T"
printf '%s\n' '[Recorder]' AuxSize=256M >"$T/ptd.conf"
"$O/ptd" --runtime-dir "$T/run" --state-dir "$T/state" --config "$T/ptd.conf" &
ptd=$!
export PTD_SOCKET=$T/run/control
for _ in {1..100}; do
	[[ -S $PTD_SOCKET ]] && break
	sleep 0.05
done
"$O/ptctl" status

cat >"$T/work.py" <<'PY'
import json, re, zlib
words = re.findall(r"\w+", open(__file__).read()) * 50
counts = {w: words.count(w) for w in set(words)}
text = json.dumps(counts, sort_keys=True)
print(len(text), zlib.crc32(text.encode()))
PY

say "Recording /usr/bin/python3 at real work; a snapshot is taken over the socket when it ends"
"$O/ptctl" record -o "$T/snapshot" -- /usr/bin/python3 "$T/work.py"
"$O/ptctl" list

say "Decoding: every instruction, annotated; then a summary, and files for DynamoRIO's tools"
"$O/ptdecode" -f text -o "$T/instructions.txt" -f summary -o "$T/summary.txt" \
	-f drmemtrace -o "$T/drmemtrace" "$T/snapshot"
total=$(wc -l <"$T/instructions.txt")
head -12 "$T/instructions.txt"
echo "..."
sed -n "$((total / 2)),$((total / 2 + 11))p" "$T/instructions.txt"
echo "... $total lines in all"

say "Summary"
cat "$T/summary.txt"

say "The files"
echo "snapshot      $T/snapshot          (perf script -i reads it too)"
echo "instructions  $T/instructions.txt"
echo "summary       $T/summary.txt"
echo "drmemtrace    $T/drmemtrace        (drmemtrace_launcher -indir)"
echo "Remove them with: rm -r $T"
