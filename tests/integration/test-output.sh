#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What -o makes: for the caller alone to read, and refused before anything is run or taken where it
# cannot be made.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64
umask 022

# private DIR: it and all that is in it. Files may be without any write permission.
private() {
	local found
	found=$(find "$1" -type d ! -perm 0700 -o ! -type d ! -perm 0600)
	[[ -z $found ]] || fail "others may read: $(stat -c '%n %a' $found | tr '\n' ' ')"
	[[ $(find "$1" -type f | wc -l) -ge ${2:-1} ]] || fail "$1 holds no $2 files"
}

start_ptd AuxSize=1M

echo "--- modes"
"$O/ptctl" record -o "$T/record" -- /bin/sh -c 'umask' >"$T/umask" || fail "record -o"
[[ $(cat "$T/umask") == 0022 ]] || fail "the program's umask is $(cat "$T/umask")"
private "$T/record" 5
"$O/ptctl" snapshot -o "$T/snapshot" >/dev/null || fail "snapshot -o"
private "$T/snapshot" 3
mkdir -m 755 "$T/empty"
"$O/ptctl" snapshot -o "$T/empty" >/dev/null || fail "snapshot -o of an empty directory"
[[ $(stat -c %a "$T/empty") == 755 ]] || fail "the mode of a directory that was there has changed"
private "$T/empty/data"
"$O/ptdecode" text -o "$T/text" --also "summary -o $T/summary" --also "export addresses -o $T/addresses" \
	--also "sideband -o $T/sideband" --also "export drmemtrace -o $T/drmemtrace" "$T/record" || fail "ptdecode: $?"
for made in text summary addresses sideband drmemtrace; do private "$T/$made"; done

# refused TEXT DIR: neither is the program run, nor a snapshot taken.
refused() {
	local out n
	n=$(ls "$T/state/snapshots" | wc -l)
	out=$("$O/ptctl" record -o "$2" -- touch "$T/ran" 2>&1)
	[[ $? -eq 125 && $out == *"$1"* ]] || fail "record -o $2: $out"
	out=$("$O/ptctl" snapshot -o "$2" 2>&1)
	[[ $? -eq 1 && $out == *"$1"* ]] || fail "snapshot -o $2: $out"
	[[ ! -e $T/ran ]] || fail "-o $2 was refused, but the program was run"
	[[ $(ls "$T/state/snapshots" | wc -l) -eq $n ]] || fail "-o $2 was refused, but a snapshot was taken"
	[[ ! -e $2 && ! -e $2.part ]] || [[ -L $2 || -d $2 || -d $2.part ]] || fail "-o $2 left something"
}

echo "--- where it cannot be made"
refused "$T/none/out: cannot write a snapshot there: $T/none: No such file or directory" "$T/none/out"
refused "$T/text/out: cannot write a snapshot there: Not a directory" "$T/text/out"
ln -s nowhere "$T/link"
refused "$T/link: cannot write a snapshot there: No such file or directory" "$T/link"
mkdir "$T/half.part"
refused "$T/half.part: in the way" "$T/half"
refused "$T/half.part: in the way" "$T/half/"
(trap '' XFSZ && ulimit -f 512 && refused "File too large" "$T/large") || exit 1
mkdir "$T/full" "$T/full2"
if mount -t tmpfs -o size=1M none "$T/full" 2>/dev/null; then
	trap 'umount "$T/full"; finish' EXIT
	head -c 600K /dev/zero >"$T/full/x"
	refused "No space left on device" "$T/full/out"
	rm "$T/full/x"
	mkdir "$T/full/out"
	head -c 600K /dev/zero >"$T/full/x"
	refused "No space left on device" "$T/full/out"
else
	echo "no tmpfs can be mounted here: only a limit of size, no full disk is tested"
fi
if [[ $(id -u) != 0 ]]; then
	chmod 500 "$T/full2"
	refused "Permission denied" "$T/full2/out"
fi
echo ok
