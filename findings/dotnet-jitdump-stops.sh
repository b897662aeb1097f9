#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that DOTNET_PerfMapEnabled=1, which writes a jitdump and a perf map, gives the code in the first
# and its names in both. The dump ends inside its second record, for good; the map is whole.
#
# Depended on by: ptd-runtimes(7), which says to ask for the map; and that code which only a map names has its name
# where a dump is there, too.
. "$(dirname "$0")/lib.sh"
npm_package @azure/mcp-linux-x64@3.0.0-beta.46 # a program that carries the runtime
export DOTNET_PerfMapEnabled=1 DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
package/dist/azmcp --version >said 2>&1 &
wait $! || missing "the program ends with status $?"
pid=$!
echo ".NET $(grep -aoE 'Microsoft.NETCore.App.Runtime.linux-x64/[0-9.]+' package/dist/azmcp | head -n 1)"
mv "/tmp/jit-$pid.dump" dump && mv "/tmp/perf-$pid.map" map || changed "a file is not written"
jitdump dump >records
echo "dump: $(stat -c %s dump) bytes, $(grep -c '^0 ' records) functions, the end: $(tail -n 1 records)"
echo "map: $(wc -l <map) lines, the last ends with a newline: $([[ -z $(tail -c 1 map) ]] && echo yes || echo no)"
grep -q ^cut records || changed "the dump is whole"
(($(grep -vc '^head\|^cut' records) < 3)) || changed "the dump has more records"
(($(wc -l <map) > 500)) || changed "the map has few lines"
