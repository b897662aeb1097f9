#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kernel code of a real kernel: what a snapshot has of it is what perf's own copy has, page for page,
# and ptd starts only if it can be had.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio python3 perf
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
test-kernelcode || fail "test-kernelcode"
test-procscan || fail "test-procscan"
test-collector >/out/test-collector.log 2>&1 || fail "test-collector"

start Trace=all AuxSize=64K
snapshot kernel
# What is the same in two snapshots is one file. The kernel may have changed its code in between.
is_one() {
	[ "$(stat -c %i /out/kernel/kcore_dir/$1)" = "$(stat -c %i /out/next/kcore_dir/$1)" ]
}
for i in 1 2 3 4 5; do
	snapshot next
	is_one kcore && break
	cmp -s /out/kernel/kcore_dir/kcore /out/next/kcore_dir/kcore && fail "there are two of the same kcore"
	rm -rf /out/kernel
	mv /out/next /out/kernel
done
is_one kcore && is_one kallsyms && is_one modules || fail "two snapshots share no code"
rm -rf /out/next
stop
perf record -q --kcore -o /out/perf -a -e intel_pt// true || fail "perf record --kcore"

# An empty kallsyms, and one without addresses.
refuses() { # WHY
	: >/out/ptd.log
	(as_unit ptd 990 ptd --config /root/ptd.conf --runtime-dir /run/ptd --state-dir /out/state 2>>/out/ptd.log) &&
		fail "ptd starts without kernel code"
	log_has "$1" || fail "no word of $1"
}
configure Trace=kernel AuxSize=64K
: >/tmp/empty
mount -o bind /tmp/empty /proc/kallsyms
refuses ProtectKernelTunables=
umount /proc/kallsyms
echo 2 >/proc/sys/kernel/kptr_restrict
refuses CAP_SYSLOG
exit 0
EOF
tests/guest/boot.sh -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" "$O/test-kernelcode" "$O/test-procscan" "$O/test-collector" \
	/usr/bin/perf | tee "$T/log" || fail "the guest's script: exit status $?"
grep -q "OK ] this_kernel" "$T/log" || fail "nothing of the real kernel was looked at"
S=$T/out/kernel
grep -Eq "^kernel_code=[0-9]{8}" "$S/manifest" || fail "the manifest: $(grep ^kernel "$S/manifest")"
(cd "$S" && sha256sum --quiet -c SHA256SUMS) || fail "sums"

python3 - "$S/kcore_dir/kcore" "$T/out/perf/kcore_dir/kcore" <<'EOF' || fail "other code than perf's"
import struct, sys

def pages(path):
    data = open(path, "rb").read()
    offset, = struct.unpack_from("<Q", data, 32)
    size, n = struct.unpack_from("<HH", data, 54)
    for i in range(n):
        kind, _, at, start, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        for page in range(0, length if kind == 1 else 0, 4096):
            yield start + page, data[at + page:at + page + 4096]

perf = dict(pages(sys.argv[2]))
same = other = missing = 0
for address, page in pages(sys.argv[1]):
    if address not in perf:
        missing += any(page)
    elif page == perf[address]:
        same += 1
    else:
        other += 1
print(f"{same} pages of kernel code equal, {other} were patched in between, perf lacks {missing}")
# The kernel patches itself: branches that are switched, while perf records.
sys.exit(same < 2000 or other > same / 100)
EOF
cmp "$S/kcore_dir/modules" "$T/out/perf/kcore_dir/modules" || fail "other modules than perf's"
sort "$T/out/perf/kcore_dir/kallsyms" >"$T/names"
[[ -z $(sort "$S/kcore_dir/kallsyms" | comm -23 - "$T/names") ]] || fail "names that perf has not"

# perf finds the kernel in it.
perf script -f -i "$S" --show-mmap-events 2>/dev/null | grep '\[kernel.kallsyms\]_text' >/dev/null || fail "perf: no kernel"
"$O/ptdecode" summary "$S" >"$T/summary" || fail "ptdecode"
