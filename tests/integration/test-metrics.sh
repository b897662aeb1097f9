#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The metrics, as the parsers of Prometheus' Python library read them: of OpenMetrics, whose reference that is,
# and of the older format. Over HTTP they are the same, and what is no good request gets no metrics.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 /usr/bin/python3
/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || skip "python3-prometheus-client is not installed"

# values: the samples on standard input, a line each, as both parsers read them.
values() {
	/usr/bin/python3 -c '
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as new
from prometheus_client.parser import text_string_to_metric_families as old
text = sys.stdin.read()
rows = [[(s.name, tuple(sorted(s.labels.items())), s.value) for f in parse(text) for s in f.samples] for parse in (new, old)]
assert rows[0] == rows[1], rows
for f in new(text):
	assert f.documentation and f.type in ("gauge", "counter") and f.name.startswith("ptd_"), f
for name, labels, value in rows[0]:
	print(name, *("%s=%s" % label for label in labels), "%.15g" % value)'
}

start_ptd
"$O/ptctl" metrics | values >"$T/before" || fail "metrics: no OpenMetrics"
[[ $(wc -l <"$T/before") -eq 19 ]] || { cat "$T/before"; fail "other metrics"; }
record true /bin/true
"$O/ptctl" metrics | values >"$T/after" || fail "metrics: no OpenMetrics"
changed=$(diff "$T/before" "$T/after" | sed -n 's/^> //p' | tr '\n' ' ')
[[ $changed == *"ptd_snapshots 1 ptd_snapshots_taken_total 1 "* ]] || fail "changed: $changed"
# What the status says is what they say.
status=$("$O/ptctl" status --json)
for pair in objects:ptd_objects cpus:ptd_cpus sideband_bytes:ptd_sideband_bytes 'aux_size:ptd_ring_bytes ring=pt'; do
	n=$(sed -E "s/.*\"${pair%%:*}\":([0-9]+).*/\1/" <<<"$status")
	grep -qx "${pair#*:} $n" "$T/after" || fail "${pair#*:} is not $n"
done
"$O/ptctl" snapshot --pid 1 >/dev/null 2>&1 && fail "a snapshot of what never ran"
"$O/ptctl" metrics | values | grep -qx 'ptd_snapshots_failed_total 1' || fail "a failed snapshot is not counted"

# Over HTTP, byte by byte.
served() { # REQUEST: its status, and the size of what follows.
	printf "$1" | "$O/ptctl" metrics --http 2>/dev/null | awk 'NR == 1 { printf "%s ", $2 } body { n++ } /^\r$/ { body = 1 } END { print n + 0 }'
}
n=$("$O/ptctl" metrics | wc -l)
for row in "200 $n:GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" "200 $n:GET /metrics?x=y HTTP/1.0\r\n\r\n" \
	'404 0:GET / HTTP/1.1\r\n\r\n' '404 0:GET /metricsx HTTP/1.1\r\n\r\n' '405 0:POST /metrics HTTP/1.1\r\n\r\n' \
	'400 0:GET /metrics HTTP/1.1\r\n' '404 0:GET /metrics\r\n\r\n' '400 0:\r\n\r\n' '400 0:' '400 0:GET /metrics \0HTTP/1.1\r\n\r\n'; do
	[[ $(served "${row#*:}") == "${row%%:*}" ]] || fail "${row#*:}: $(served "${row#*:}")"
done
head -c 100000 /dev/zero | tr '\0' a | "$O/ptctl" metrics --http 2>/dev/null | grep -q '^HTTP/1.1 400 ' || fail "a large request"
mkfifo "$T/silent"
timeout 120 "$O/ptctl" metrics --http <"$T/silent" >"$T/answer" &
exec 7>"$T/silent"
wait $!
grep -q '^HTTP/1.1 400 ' "$T/answer" || fail "a client that says nothing"
exec 7>&-
stop_ptd
served 'GET /metrics HTTP/1.1\r\n\r\n' | grep -qx '503 0' || fail "without ptd: not 503"
"$O/ptctl" metrics >"$T/none" 2>&1
[[ $? == 3 ]] && ! grep -q '^ptd_' "$T/none" || fail "without ptd: not status 3"
echo "$n lines, read by both parsers"
