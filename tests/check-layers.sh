#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Check which folder includes which, in the tree of the current directory. Print every #include that
# tests/layers does not allow, every folder of C code that has no row there, every circle of folders that
# include each other, and every file that sees a library's header which tests/layers gives to other
# folders; fail if there is one of these.

# includes: a line "FILE:LINE FOLDER INCLUDED-FOLDER" for each #include of a header of ours. The headers
# in include/base are included as "base/", those in include/ptd as "ptd/".
sources() { find include util decoder daemon ctl tests/judge -name '*.[ch]' | sort; }

includes() {
	sources | xargs grep -HnoE '^#include ["<](base|ptd|util|daemon|decoder|ctl|tests)(/[a-z0-9_-]+)*/' |
		sed -E 's|^(include/)?(([^:]*)/[^/:]*:[0-9]+):#include ["<](.*)/$|\1\2 \3 \4|'
}

bad=$(
	includes | awk '
		FNR == NR && !/^[#<]/ {
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
	sources | xargs grep -HoE '^#include ["<][^">]*[">]' | awk '
		FNR == NR && /^</ {
			library[$1] = 1
			for (i = 2; i <= NF; i++)
				may[$1, $i] = 1
		}
		FNR == NR { next }
		{
			file = $1
			sub(":#include$", "", file)
			name = $2
			if (name in library)
				sees[file, name] = name
			gsub("[\"<>]", "", name)
			path = name ~ "^(base|ptd)/" ? "include/" name : name
			n_users[path]++
			users[path, n_users[path]] = file
		}
		# Whoever includes a header that sees a library sees it, too.
		function spread(path, header,	i, user) {
			for (i = 1; i <= n_users[path]; i++) {
				user = users[path, i]
				if (!((user, header) in sees)) {
					sees[user, header] = path
					spread(user, header)
				}
			}
		}
		END {
			for (seen in sees)
				direct[seen] = sees[seen]
			for (seen in direct) {
				split(seen, part, SUBSEP)
				spread(part[1], part[2])
			}
			for (seen in sees) {
				split(seen, part, SUBSEP)
				folder = part[1]
				sub("/[^/]*$", "", folder)
				if (!((part[2], folder) in may))
					print part[1] ": " folder " may not see " part[2] ", through " sees[seen]
			}
		}
	' tests/layers - | sort
)
[ -z "$bad" ] || { printf '%s\n' "$bad"; exit 1; }
