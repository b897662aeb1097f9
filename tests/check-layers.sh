#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Print every #include that tests/layers does not allow; fail if there is one.
grep -v '^#' tests/layers | while read -r dir allowed; do
	grep -HnoE '^#include ["<](base|ptd|daemon|decoder|ctl)(/[a-z0-9_-]+)*/' \
		"$dir"/*.[ch] 2>/dev/null |
	while IFS=: read -r file line include; do
		from=${include#*[\"<]}
		from=${from%/}
		case " $allowed " in
		*" $from "*) ;;
		*) echo "$file:$line: $dir may not include $from/" ;;
		esac
	done
done | { ! grep . ; }
