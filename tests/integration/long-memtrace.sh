#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Large drmemtrace directories: more than 500 million instructions, 60 processes one after the other, and 2,000
# threads in one trace, in less than 300 MB of memory, compressed or not; chunks of 10 million instructions; and zip
# files that are at most 1.05 times as large as zlib's level 1 makes the same records.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 unzip
python=/usr/bin/python3 # the interpreter itself: what PATH has may be a script that seeks it
[[ -x $python ]] || skip "$python is not installed"

# write NAME ARG...: decode into $T/NAME.mem, and check the peak.
write() {
	local name=$1 peak
	shift
	rm -rf "$T/$name.mem"
	"$O/tools/peak" "$O/ptdecode" --threads 2 export drmemtrace -o "$T/$name.mem" "$@" 2>"$T/peak" ||
		fail "$name: $(cat "$T/peak")"
	peak=$(cat "$T/peak")
	echo "$name: $(du -sk --apparent-size "$T/$name.mem" | cut -f1) KiB, peak $peak KiB"
	[[ $peak -lt 300000 ]] || fail "$name: $peak KiB of memory"
}

start_ptd Cpus=1 AuxSize=1G PT=psb_period=1
"$O/ptctl" record -o "$T/python" -- "$python" -I -S -c 'print(sum(i * i % 7 for i in range(260000)))' >/dev/null ||
	fail "record"
"$O/tools/reshape" repeat=3 "$T/python/data" "$T/in" || fail "reshape"
n=$("$O/ptdecode" --buildid-dir "$T/python/objects" summary "$T/in" | awk '/^Instructions:/ { print $2 }')
echo "$n instructions"
[[ $n -gt 500000000 ]] || fail "too few"
write python --buildid-dir "$T/python/objects" "$T/in"
# The thread has a second file: the repeated stream goes on after the thread's end.
"$O/tools/memtrace-check" --list "$T/python.mem" >"$T/files" || fail "python: the drmemtrace is not valid"
sum=0
while read -r file _ _ _ _ _ in_file _; do
	unzip -tq "$file" || fail "$file"
	[[ $(unzip -Z1 "$file" | wc -l) == $(((in_file + 9999999) / 10000000)) ]] || fail "members of $file"
	sum=$((sum + in_file))
done <"$T/files"
[[ $sum == "$n" ]] || fail "the files have $sum instructions"

rm "$T/in"
write python --compress=none "$T/python"
write python "$T/python"
least=$(python3 -c '
import glob, sys, zipfile, zlib
size = 0
for path in glob.glob(sys.argv[1]):
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            size += len(packer.compress(archive.read(name)))
    size += len(packer.flush())
print(size)' "$T/python.mem/trace/drmemtrace.*")
size=$(cat "$T"/python.mem/trace/drmemtrace.* | wc -c)
echo "zip has $size bytes, zlib -1 $least"
[[ $size -le $((least * 105 / 100)) ]] || fail "zip is too large"
rm -rf "$T"/python*

start_ptd Cpus=2
"$O/ptctl" record -o "$T/processes" -- sh -c "for i in \$(seq 60); do $python -I -S -c pass; done" ||
	fail "record processes"
write processes "$T/processes"
rm -rf "$T"/processes*

start_ptd Cpus=4
"$O/ptctl" record -o "$T/threads" -- "$O/targets/manythreads.c" || fail "record threads"
write threads --compress=none "$T/threads"
write threads "$T/threads"
[[ $(ls "$T/threads.mem/trace" | grep -c '^drmemtrace\..*[0-9]\.trace') == 2001 ]] || fail "threads: not 2001 files"
