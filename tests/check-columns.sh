#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Print every comment that goes beyond column 100; fail if there is one. (Of code clang-format has
# the last word, and it leaves comments alone.)
git ls-files '*.[ch]' '*.cc' | LC_ALL=C xargs awk '
{
	line = $0
	while (i = index(line, "\t"))
		line = substr(line, 1, i - 1) substr("        ", (i - 1) % 8 + 1) substr(line, i + 1)
	gsub(/[\200-\277]/, "", line) # bytes of a character behind its first
	if (length(line) > 100 && line ~ /\/\*|^ *\*/)
		print FILENAME ":" FNR ": " length(line) " columns"
}' | { ! grep . ; }
