# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that have streams of ovni judged; they source it after common.sh.

# write_ovni NAME [OPTION]...: the recording $T/NAME as streams of ovni of both versions, $T/NAME.v3 and $T/NAME.v1, which
# are judged by a reader that is written from their document.
write_ovni() {
	local name=$1
	shift
	rm -rf "$T/$name".v[13]
	"$O/ptdecode" "$@" export ovni --inlines=no -o "$T/$name.v3" \
		--also "export ovni --inlines=no --format-version=1 -o $T/$name.v1" \
		--also "calls --inlines=no --json -o $T/$name.calls" "$T/$name" ||
		fail "$name: ptdecode: status $?"
	for version in 1 3; do
		tests/tools/ovni.py $version "$T/$name.v$version" "$T/$name.calls" || fail "$name: version $version"
	done
}

# counts VERSION: what the reader counted, which $T/read has, as the emulator says it.
counts() {
	sed -n "s/^version $1: \([0-9]*\) streams, \([0-9]*\) events: .*/\1 streams, \2 events/p" "$T/read"
}

# emulate NAME: ovni's emulator takes the streams without a complaint, counts as many streams and events, and shows the
# functions that are innermost. $PTD_OVNI is the folder of ovniemu of ovni 1.11 to 1.14, $PTD_OVNI_CFG the folder cfg of its
# sources, and $PTD_OVNI1, if it is set, the folder of ovniemu of July 2022, which takes version 1 as its document has it.
emulate() {
	local said
	OVNI_CONFIG_DIR=${PTD_OVNI_CFG:-} "$PTD_OVNI/ovniemu" -l "$T/$1.v3/ovni" >"$T/emu" 2>&1 ||
		{ tail -5 "$T/emu"; fail "$1: ovniemu"; }
	! grep -E 'WARN|ERROR' "$T/emu" || fail "$1: ovniemu complains"
	said="$(sed -n 's/.*loaded \([0-9]* streams\)$/\1/p' "$T/emu"), $(sed -n 's/.*processed \([0-9]*\) input events.*/\1 events/p' "$T/emu")"
	[[ $said == "$(counts 3)" ]] || fail "$1: ovniemu has $said, not $(counts 3)"
	tests/tools/ovni.py 3 "$T/$1.v3" "$T/$1.calls" "$T/$1.v3/ovni/thread.prv" >/dev/null || fail "$1: what ovniemu shows"
	echo "$1: ovniemu: $said, and the same functions"
	[[ -x ${PTD_OVNI1:-}/ovniemu ]] || return 0
	"$PTD_OVNI1/ovniemu" "$T/$1.v1/ovni" >"$T/emu" 2>&1 || { tail -5 "$T/emu"; fail "$1: ovniemu of version 1"; }
	! grep -iE 'error|warn|panic|abort' "$T/emu" || fail "$1: ovniemu of version 1 complains"
	grep -qx "loaded $(counts 1 | cut -d, -f1)" "$T/emu" || fail "$1: ovniemu of version 1 has other streams"
}
