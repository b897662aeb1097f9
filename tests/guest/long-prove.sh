#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptctl check --prove where there is PT: what is decoded of each program is what the guest's CPU executes when it is
# stepped.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat >"$T/script" <<'EOF'
export TMPDIR=/tmp
ptctl check --prove -o /out/kept
EOF
tests/guest/boot.sh -p -t 1800 -o "$T/out" "$T/script" "$O"/{ptd,ptctl,ptdecode,prove,ptd-subject} 2>"$T/err" |
	tee "$T/report" || { tail -n 20 "$T/err" >&2; fail "they differ, or the guest's script failed"; }
[[ $(grep -c ' flow [0-9]* equal, insn [0-9]* equal,.* gaps 0$' "$T/report") == $("$O/ptd-subject" list | wc -l) ]] ||
	fail "not all programs"
grep -q '^source: *pt' "$T/report" || fail "PT did not record"
grep -q 'psb_cyc=' "$T/report" || fail "the properties of PT are not named"
