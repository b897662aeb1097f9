#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Debian 13, from a bare one on: the README's two commands in a fresh clone, and the packages.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/release.sh
make_root trixie

echo "--- make demo"
inside 'make demo' >"$T/demo" 2>&1 || { tail -n 30 "$T/demo"; fail "make demo"; }
grep -q 'python3' "$T/demo" && grep -q 'JS:.fib' "$T/demo" || { tail -n 60 "$T/demo"; fail "make demo shows no python3 or node"; }
tail -n 12 "$T/demo"

echo "--- make check"
inside 'make check WERROR=-Werror' >"$T/check" 2>&1
status=$?
grep -E '^(FAILED|skipped) ' "$T/check"
tail -n 1 "$T/check"
[[ $status == 0 ]] || { tail -n 100 "$T/check"; fail "make check"; }

echo "--- make deb"
inside 'make deb && lintian --fail-on error,warning build/deb/*.changes' >"$T/deb" 2>&1 || { tail -n 30 "$T/deb"; fail "make deb"; }
inside 'rm build/deb/*-dbgsym*; apt-get install -qy --no-install-recommends ./build/deb/*.deb && /usr/lib/ptd/get-emulator &&
	for script in record build; do debian/tests/$script || exit; done &&
	apt-get purge -qy ptd ptdecode libptdecode0 libptdecode-dev && ! ls -d /usr/lib/ptd /var/lib/ptd' >"$T/debs" 2>&1 ||
	{ tail -n 30 "$T/debs"; fail "the packages"; }
grep '^Instructions' "$T/debs"
