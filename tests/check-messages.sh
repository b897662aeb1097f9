#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Messages of the programs are clauses: none ends with a full stop.
set -u
cd "$(dirname "$0")/.." || exit 1
calls='log_(at|as|errno_as|error|warning|notice|info|error_errno|warning_errno)|sd_bus_(error_setf?|reply_method_errorf)|message_set|complain|wrong|refuse[a-z_]*'

# A statement is what a semicolon ends; its strings are put together as the compiler does. A table has messages if a
# row has a member for one: the statement before the table declares it.
git ls-files 'util/*.c' 'ctl/*.c' 'daemon/*.c' 'decoder/*.c' | xargs awk -v RS=';' -v calls="(^|[^a-z_])($calls)\\(" '
	FNR == 1 { is_row = 0 }
	$0 ~ calls || (is_row && /^[ \t\n]*} [a-z_]+\[\] = {/) {
		gsub(/"[ \t\n]+"/, "")
		if ($0 ~ /[^.]\.(\\n)?"[ \t\n]*[,)}]/) {
			gsub(/[ \t\n]+/, " ")
			print FILENAME ": a message ends with a full stop:" $0
			bad = 1
		}
	}
	{ is_row = /\*(message|text)(,|$)/ }
	END { exit bad }'
