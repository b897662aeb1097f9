#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What ptctl check --prove compares: with the software source, each program's instructions are those that it executes
# when this machine's CPU steps it, and a difference is found. With PT: tests/guest/long-prove.sh.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "the program is linked without what sanitizers need"

# In a folder of its own, so that ptdecode can be another one.
mkdir "$T/bin"
cp "$O"/{prove,ptd-subject,ptd,ptd-collector,ptctl,ptdecode,ptd-emu.so} "$T/bin"
subjects=$("$O/ptd-subject" list | wc -l)

[[ -e /sys/bus/event_source/devices/intel_pt ]] || {
	"$O/ptctl" check --prove >"$T/report" 2>"$T/err"
	[[ $? == 1 ]] && grep -q "there is no Intel PT on this machine" "$T/err" || fail "without PT: $(cat "$T/report" "$T/err")"
}
start_ptd
"$T/bin/prove" -e -o "$T/kept" >"$T/report" || fail "$(cat "$T/report")"
cat "$T/report"
[[ $(grep -c ' flow [0-9]* equal, insn [0-9]* equal,.* gaps 0$' "$T/report") == "$subjects" && ! -e $T/kept ]] ||
	fail "not $subjects programs"
grep -q '^source: *emu$' "$T/report" || fail "the source is not named"

echo "--- an instruction that is decoded as another"
mv "$T/bin/ptdecode" "$T/bin/real"
cat >"$T/bin/ptdecode" <<'EOF'
#!/bin/bash
[[ $* == *insn*addresses* ]] || exec "$(dirname "$0")/real" "$@"
"$(dirname "$0")/real" "$@" >"$TMPDIR/planted" || exit
printf '\1' | dd of="$TMPDIR/planted" bs=1 seek=$(($(stat -c %s "$TMPDIR/planted") / 16 * 8)) conv=notrunc status=none
cat "$TMPDIR/planted"
EOF
chmod +x "$T/bin/ptdecode"
"$T/bin/prove" -e -o "$T/kept" >"$T/report" && fail "no difference is found: $(cat "$T/report")"
grep ' insn DIFFERS: [0-9]* of [0-9]* equal, then 0x[0-9a-f]* ran and 0x[0-9a-f]* is decoded,' "$T/report" ||
	fail "it is not said where they differ: $(cat "$T/report")"
grep -q ' flow DIFFERS' "$T/report" && fail "the other engine differs, too"
name=$(sed -n 's/ .*insn DIFFERS.*//p' "$T/report" | head -n 1)
"$O/ptdecode" --force summary "$T/kept/$name" >/dev/null || fail "the recording that differs is not left"
echo ok
