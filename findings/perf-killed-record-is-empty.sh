#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a recording whose perf record was killed holds what had been written until then, and that
# perf script lists that. The samples are in the file, but the header says until the end of perf record that its
# data have 0 bytes, and perf believes the header: it warns and lists no sample. With the size written into the
# header, the same file is listed.
#
# Depended on by: decoder/file/perfdata.c, which reads what lies behind such a header.
. "$(dirname "$0")/lib.sh"
debian_package linux-perf perf
perf --version
perf record -q -e cpu-clock -o killed.data -- sh -c 'while :; do :; done' >said 2>&1 &
recorder=$!
# Samples are written when a buffer is half full, or by the records of a busy machine: wait for bytes, not for time.
for ((i = 0; i < 600; i++)); do
	[[ $(stat -c %s killed.data 2>/dev/null || echo 0) -lt 16384 ]] || break
	kill -0 $recorder 2>/dev/null || missing "perf record: $(tail -n 1 said)"
	sleep 0.1
done
worker=$(pgrep -P $recorder | head -n 1)
kill -9 $recorder
wait $recorder 2>/dev/null
[[ -z $worker ]] || kill -9 "$worker" 2>/dev/null

python3 - <<'EOT' || changed "the header has a size, or there are no samples behind it"
import struct, sys
data = bytearray(open("killed.data", "rb").read())
at, size = struct.unpack_from("<QQ", data, 40)
first, samples = at, 0
while at + 8 <= len(data):
    kind, _, length = struct.unpack_from("<IHH", data, at)
    if length < 8 or at + length > len(data): break
    samples += kind == 9
    at += length
print("the header:", size, "bytes of data; behind it:", at - first, "bytes,", samples, "samples")
struct.pack_into("<Q", data, 48, at - first)
open("mended.data", "wb").write(data)
sys.exit(size != 0 or samples == 0)
EOT
listed=$(perf script -i killed.data 2>warning | wc -l)
echo "perf script of it: $listed lines, and: $(head -n 1 warning)"
[[ $listed == 0 ]] || changed "perf lists the samples"
grep -q "data size field is 0" warning || changed "perf does not warn"
listed=$(perf script -i mended.data 2>/dev/null | wc -l)
echo "with the size in the header: $listed lines"
[[ $listed -gt 0 ]] || changed "perf does not list them with a size either"
