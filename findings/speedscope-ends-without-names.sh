#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that the end of a span in Chrome's format needs no name, since ends close what was begun last, and
# the format says so. Speedscope closes nothing by such ends: each span lasts to the end of the trace, nested in
# the one before.
#
# Depended on by: decoder/sink/export, whose ends in export chrome name what they end.
. "$(dirname "$0")/lib.sh"
tool=$(cd "$OLDPWD" && realpath "$(dirname "$0")/../tests/tools/speedscope.mjs")
command -v node >/dev/null || missing "node is not installed"
npm_package speedscope@1.25.0
echo "speedscope $(node -p 'require("./package/package.json").version')"

# calls NAME: what the importer makes of two spans, whose ends have this name, or none; or its warning.
calls() {
	local end="\"pid\":1,\"tid\":1${1:+,\"name\":\"$1\"}" begin='"ph":"B","pid":1,"tid":1,"name":"a"'
	echo "{\"traceEvents\":[{$begin,\"ts\":0},{\"ph\":\"E\",$end,\"ts\":10},{$begin,\"ts\":20},{\"ph\":\"E\",$end,\"ts\":30}]}" >trace.json
	node "$tool" package calls trace.json 2>&1 | tail -n 1
}

echo "ends with names: $(calls a | tee named)"
echo "ends without: $(calls '' | tee unnamed)"
grep -qF '"calls":[["a",0,10],["a",20,10]]' named || changed "spans whose ends have names"
grep -q 'Doing nothing instead' unnamed || changed "ends without names do something"
