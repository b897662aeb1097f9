#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Compare tests/golden/coverage with what the golden cases say they cover: print what lacks on either
# side, fail if there is any.
rows=$(grep -v '^#' tests/golden/coverage | grep . | sort -u)
covered=$(sed -n 's/^covers //p' tests/golden/*.case | tr -s ' ' '\n' | sort -u)
{
	printf '%s\n' "$covered" "$covered" "$rows" | sort | uniq -u |
		sed 's|.*|tests/golden/coverage: no case covers &|'
	printf '%s\n' "$rows" "$rows" "$covered" | sort | uniq -u |
		sed 's|.*|tests/golden/coverage: has no row &, which a case covers|'
} | { ! grep . ; }
