#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What is installed is removed again; what building takes is named in the README.
. "$(dirname "$0")/lib/common.sh"

echo "--- install and uninstall"
umask 022
for prefix in /usr /usr/local; do
	D=$T/dest
	mkdir "$D"
	in_dest() { make -s "$1" O="$O" VERSION=dev DESTDIR="$D" prefix="$prefix" >"$T/$1.log" 2>&1 || fail "$(cat "$T/$1.log")"; }
	in_dest install
	if grep -E -- ' -c -o |^ *ar ' <<<"$(make -n install O="$O" VERSION=dev DESTDIR="$D" prefix="$prefix")"; then
		fail "what was built would be compiled anew"
	fi
	n=$(find "$D" -type f | wc -l)
	[[ $n -gt 20 ]] || fail "only $n files were installed: $(find "$D")"
	for f in etc/ptd/ptd.conf "$prefix"/{bin/{ptctl,ptdecode},sbin/ptd,lib/{ptd/ptd-emu.so,libptdecode.a,libptdecode.so,pkgconfig/ptdecode.pc}} \
		"$prefix/include/ptd/decode.h" "$prefix/lib/systemd/system/ptd.service" "$prefix/share/man/man1/ptctl.1"; do
		[[ -f $D/$f ]] || fail "$f was not installed"
	done
	grep -qx "ExecReload=$prefix/bin/ptctl reload" "$D$prefix/lib/systemd/system/ptd.service" || fail "ExecReload is not in $prefix"
	grep -qx "ExecStart=$prefix/lib/ptd/ptd-keeper /run/ptd/keeper/socket" \
		"$D$prefix/lib/systemd/system/ptd-keeper.service" || fail "the keeper is not in $prefix"
	[[ -x $D$prefix/lib/ptd/ptd-keeper ]] || fail "ptd-keeper was not installed"
	grep -qx "ExecStart=$prefix/lib/ptd/ptd-collector /run/ptd/collector/socket ptd" \
		"$D$prefix/lib/systemd/system/ptd-collector.service" || fail "the collector is not in $prefix"
	grep -qx "ExecStartPre=-+$prefix/lib/ptd/perf-level lower" "$D$prefix/lib/systemd/system/ptd.service" ||
		fail "ExecStartPre is not in $prefix"
	[[ -x $D$prefix/lib/ptd/perf-level ]] || fail "perf-level was not installed"
	[[ ! -e $D$prefix/lib/sysctl.d ]] || fail "settings of the kernel were installed"
	[[ -x $D$prefix/lib/ptd/ptd-collector ]] || fail "ptd-collector was not installed"
	grep -qx "ExecStart=$prefix/sbin/ptd" "$D$prefix/lib/systemd/system/ptd.service" || fail "ExecStart is not in $prefix"
	[[ $(stat -c %a "$D$prefix/bin/ptctl" "$D$prefix/include/ptd/decode.h") == 755$'\n'644 ]] || fail "modes"
	"$D$prefix/bin/ptctl" --version >/dev/null || fail "the installed ptctl does not run"

	in_dest uninstall
	[[ -z $(find "$D" -mindepth 1) ]] || fail "left: $(find "$D" -mindepth 1)"
	in_dest uninstall # of nothing

	# What is not ours, or was changed, stays.
	in_dest install
	echo AuxSize=1M >>"$D/etc/ptd/ptd.conf"
	touch "$D$prefix/lib/ptd/other" "$D$prefix/bin/other"
	in_dest install
	grep -q AuxSize=1M "$D/etc/ptd/ptd.conf" || fail "changed settings were overwritten"
	in_dest uninstall
	left=$(cd "$D" && find . -type f | sort | tr '\n' ' ')
	[[ $left == "./etc/ptd/ptd.conf .$prefix/bin/other .$prefix/lib/ptd/other " ]] || fail "left: $left"
	rm -r "$D"
	echo "$prefix: $n files"
done

echo "--- each id of a message has a text in the catalog, and stands in ptd(8)"
sed -nE 's/^#define PTD_MESSAGE_.* "([0-9a-f]{32})".*/\1/p' include/ptd/control.h | sort >"$T/ids"
[[ $(wc -l <"$T/ids") -gt 5 && -z $(uniq -d "$T/ids") ]] || fail "ids: $(cat "$T/ids")"
sed -n 's/^-- //p' systemd/ptd.catalog | sort | diff "$T/ids" - || fail "the catalog has others"
grep -oE '^(.It )?[0-9a-f]{32}$' daemon/ptd.8 | sed 's/.* //' | sort | diff "$T/ids" - || fail "ptd(8) has others"
grep -rhoE 'PTD_MESSAGE_[A-Z_]+' daemon | sort -u | wc -l | grep -qx "$(wc -l <"$T/ids")" || fail "not all are logged"
if command -v journalctl >/dev/null; then
	install -D systemd/ptd.catalog "$T/root/usr/lib/systemd/catalog/ptd.catalog"
	mkdir -p "$T/root/var/lib/systemd/catalog"
	journalctl --root="$T/root" --update-catalog 2>"$T/said" && [[ ! -s $T/said ]] || fail "the catalog: $(cat "$T/said")"
fi

echo "--- README names the packages that building takes"
for package in make $(make -s -f Makefile -f - print-packages O="$O" <<<'print-packages: ; @echo $(PACKAGES_BUILD)'); do
	n=$((n + 1))
	sed -n '/^## Install/,/^## Test/p' README.md | grep -qw -- "$package" || fail "README does not name $package"
done
echo ok
