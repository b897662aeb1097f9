# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that have streams of ovni judged; they source it after common.sh.

# write_ovni NAME [OPTION]...: the recording $T/NAME as streams of ovni of both versions, $T/NAME.v3 and $T/NAME.v1, which
# are judged by a reader that is written from their document.
write_ovni() {
	local name=$1
	shift
	rm -rf "$T/$name".v[13]
	"$O/ptdecode" "$@" -f ovni -o "$T/$name.v3" -f ovni:version=1 -o "$T/$name.v1" -f calls:json -o "$T/$name.calls" "$T/$name" ||
		fail "$name: ptdecode: status $?"
	for version in 1 3; do
		tests/tools/ovni.py $version "$T/$name.v$version" "$T/$name.calls" || fail "$name: version $version"
	done
}
