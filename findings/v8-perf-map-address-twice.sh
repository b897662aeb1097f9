#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a perf map says what is at an address. V8 only appends: an address whose code was
# collected, or moved, and that is used again has another line with another name, and no line says that the
# first one is over. The last line is right, and only for the code that is there now.
#
# Depended on by: decoder/symbol/perfmap.h, the table of what a name is claimed for.
. "$(dirname "$0")/lib.sh"
command -v node >/dev/null || missing "node is not installed"
echo "node $(node --version)"
cat >many.js <<'EOT'
let sum = 0;
for (let i = 0; i < 3000; i++) {
	const f = new Function("n", "let s = " + i + "; for (let k = 0; k < n; k++) s ^= k * " + i + "; return s");
	for (let k = 0; k < 300; k++) sum += f(200);
	if (i % 200 == 0) gc();
}
console.log(sum);
EOT
node --perf-basic-prof --expose-gc many.js >/dev/null &
wait $!
mv "/tmp/perf-$!.map" map
python3 - <<'EOT'
import sys
names, bare, lines = {}, 0, 0
for line in open("map", errors="replace"):
    at, size, name = line.rstrip("\n").split(" ", 2)
    names.setdefault(at, []).append(name)
    lines += 1
twice = {at: n for at, n in names.items() if len(set(n)) > 1}
print(lines, "lines,", len(names), "addresses,", len(twice), "of them with more than one name, as:")
for at, n in list(twice.items())[:1]:
    print(at, *dict.fromkeys(n), sep="\n\t")
sys.exit(len(twice) < 10)
EOT
[[ $? == 0 ]] || changed "addresses are named once"
