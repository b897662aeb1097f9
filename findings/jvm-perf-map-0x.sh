#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that the JVM's perf map has the form that perf documents, "START SIZE symbolname" in hex without
# 0x. Both numbers of each line have 0x. perf reads it all the same, since strtoull() takes 0x in base 16.
#
# Depended on by: decoder/symbol/perfmap.c, read_hex().
. "$(dirname "$0")/lib.sh"
debian_package openjdk-17-jre-headless java
java -version 2>&1 | head -n 1
java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -Xlog:disable -version 2>/dev/null &
wait $!
map=/tmp/perf-$!.map
[[ -s $map ]] || changed "no $map is written"
mv "$map" map
lines=$(wc -l <map)
both=$(grep -cE '^0x[0-9a-f]+ 0x[0-9a-f]+ [^ ]' map)
echo "$both of $lines lines have 0x before the address and before the size, as:"
sed -n 3p map
((lines > 100 && both == lines)) || changed "not all lines"
