# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Two programs of others for test-lcov.sh, which sources it: SQLite, and bzip2.
. tests/integration/lib/sqlite.sh

fetch_npm node-bzip2@1.0.2 11c379cb0759102cd723176471eec575c5e12b72c9e4a57920d97116512050fd package/lib/bzip2
bzip=$T/npm.node-bzip2/package/lib/bzip2
# The package's build writes the one, and knows the other.
echo '#define BZ_VERSION "1.0.8"' >"$bzip/bz_version.h"
sed -i '1i #define BZ_UNIX 1' "$bzip/bzip2.c"

head -c 16000 "$sqlite/sqlite3.c" >"$T/input"

# real NAME SOURCES COMMAND...: run the command, which gets the program as $P, and judge each of its sources.
real() {
	local name=$1 sources=$2 pairs=() source
	mkdir "$T/$name.gcov"
	# shellcheck disable=SC2086 # the sources are words
	(cd "$T/$name.gcov" && gcc -O0 -w --coverage -I "$sqlite" -o "$name" $sources -lm && P=./$name "${@:3}" >out &&
		gcov -- *.gcda) >"$T/log" 2>&1 || fail "gcov of $name: $(tail -n 20 "$T/log")"
	# shellcheck disable=SC2086
	gcc -O0 -w -g -I "$sqlite" -o "$T/$name" $sources -lm || fail "$name"
	P=$T/$name "$O/ptctl" record -o "$T/$name.rec" -- "${@:3}" >"$T/out" || fail "record $name"
	cmp "$T/out" "$T/$name.gcov/out" || fail "the runs of $name differ"
	"$O/ptdecode" export lcov --binary="$name" -o "$T/$name.info" "$T/$name.rec" || fail "lcov of $name"
	for source in $sources; do
		[[ ! -f $T/$name.gcov/${source##*/}.gcov ]] || pairs+=("$source" "$T/$name.gcov/${source##*/}.gcov")
	done
	tests/tools/coverage.py "$T/$name.info" "${pairs[@]}" || fail "$name"
	genhtml --branch-coverage -q -o "$T/$name.html" "$T/$name.info" >"$T/log" 2>&1 || fail "genhtml: $(cat "$T/log")"
}

real sqlite "$sqlite/sqlite3.c $T/shell.c" sh -c "\$P $T/script.sql"
real bzip2 "$(printf '%s ' "$bzip"/{blocksort,bzip2,bzlib,compress,crctable,decompress,huffman,randtable}.c)" \
	sh -c "\$P -c $T/input"
