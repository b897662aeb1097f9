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
for _ in {1..6000}; do
	[[ -S $PTD_SOCKET ]] && break
	sleep 0.05
done
"$O/ptctl" status

cat >"$T/work.py" <<'PY'
words = open(__file__).read().split() * 20
counts = {w: words.count(w) for w in sorted(set(words))}
print(len(words), "words,", len(counts), "of them different; most often:", max(counts, key=counts.get))
PY

say "Recording /usr/bin/python3 at real work; a snapshot is taken over the socket when it ends"
"$O/ptctl" record -o "$T/snapshot" -- /usr/bin/python3 -I -S "$T/work.py"
"$O/ptctl" list

say "Decoding: every instruction, annotated (the first ones, and some from the middle)"
"$O/ptdecode" summary -o "$T/summary.txt" --also "export drmemtrace -o $T/drmemtrace" --also "html -o $T/report.html" \
	--also "export fxt -o $T/trace.fxt" "$T/snapshot"
total=$(awk '/^Instructions:/ { print $2 }' "$T/summary.txt")
"$O/ptdecode" text "$T/snapshot" |
	awk -v middle=$((total / 2)) 'NR <= 12; NR == 13 { print "..." } NR > middle && NR <= middle + 12'
echo "... $total instructions in all"

say "Summary"
cat "$T/summary.txt"

cat >"$T/work.js" <<'JS'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
let sum = 0;
for (let i = 0; i < 10; i++) sum += fib(16);
console.log("node", process.version, "counted to", sum);
JS

say "Recording node: code that its JIT compiler makes while it runs, with the names it notes"
# Certificates, read at the start, would be most of what runs.
(cd "$T" && env -u NODE_EXTRA_CA_CERTS "$O/ptctl" record -o "$T/node" -- node --perf-prof work.js)

say "Decoding it: some of the function fib (JS:* is what node has optimised, JS:^ is not yet)"
"$O/ptdecode" text "$T/node" | awk '/JS:.fib/ && ++n > 1000; n == 1012 { exit }'
"$O/ptdecode" summary -o "$T/node.txt" "$T/node"
grep -E '^Instructions:|^Early:|\[jit\]$' "$T/node.txt"

say "The files"
echo "snapshot      $T/snapshot          (perf script -i reads it too)"
echo "of node       $T/node"
echo "summaries     $T/summary.txt, $T/node.txt"
echo "drmemtrace    $T/drmemtrace        (drmemtrace_launcher -indir)"
echo "report        $T/report.html       (open it in a browser; it needs no network)"
echo "timeline      $T/trace.fxt         (open it in https://ui.perfetto.dev)"
echo "All instructions as text: $1/ptdecode text $T/snapshot"
echo "Remove them with: rm -r $T"
