#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# An emulator that does not have the plugin's interface says that in a line, and ptctl record fails, and leaves no
# snapshot.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 "${CC:-cc}"

echo 'int qemu_plugin_version = 99; int qemu_plugin_install(void); int qemu_plugin_install(void) { return 0; }' >"$T/other.c"
"${CC:-cc}" -shared -fPIC -o "$T/other.so" "$T/other.c" || fail "cc"
start_ptd
PTD_EMU_SO=$T/other.so "$O/ptctl" record -- /bin/true 2>"$T/err"
[[ $? == 125 ]] || fail "another interface: exit status $?"
grep -q "plugin requires API version 99, but this QEMU supports only" "$T/err" && [[ $(wc -l <"$T/err") == 1 ]] ||
	fail "another interface: $(cat "$T/err")"
[[ -z $(ls "$T/state/snapshots") ]] || fail "another interface: there is a snapshot of nothing"
record true /bin/true
