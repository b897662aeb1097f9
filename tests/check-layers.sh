#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Check which folder includes which, in the tree of the current directory. Print every #include that
# tests/layers does not allow, every folder of C code that has no row there, and every circle of folders
# that include each other; fail if there is one of these.

# includes: a line "FILE:LINE FOLDER INCLUDED-FOLDER" for each #include of a header of ours. The headers
# in include/base are included as "base/", those in include/ptd as "ptd/".
includes() {
	find include util record decoder daemon ctl -name '*.[ch]' | sort |
		xargs grep -HnoE '^#include ["<](base|ptd|util|record|daemon|decoder|ctl)(/[a-z0-9_-]+)*/' |
		sed -E 's|^(include/)?(([^:]*)/[^/:]*:[0-9]+):#include ["<](.*)/$|\1\2 \3 \4|'
}

bad=$(
	includes | awk '
		FNR == NR && !/^#/ {
			sub("^include/", "", $1)
			row[$1] = 1
			for (i = 2; i <= NF; i++)
				may[$1, $i] = 1
		}
		FNR == NR { next }
		!($2 in row) && !said[$2]++ { print $1 ": " $2 " has no row in tests/layers" }
		$2 in row && $2 != $3 && !(($2, $3) in may) { print $1 ": " $2 " may not include " $3 "/" }
	' tests/layers -
	includes | awk '$2 != $3 { print $2, $3 }' | sort -u | tsort 2>&1 >/dev/null |
		sed 's/^tsort: -: input contains a loop:$/These folders include each other in a circle:/
			s/^tsort: /  /'
)
[ -z "$bad" ] || { printf '%s\n' "$bad"; exit 1; }
