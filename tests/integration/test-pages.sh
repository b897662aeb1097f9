#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The manual pages: mandoc has no warning about them, each has examples, and each option and verb that
# --help lists stands in its program's page, and the other way round.
. "$(dirname "$0")/lib/common.sh"
need mandoc

for page in include/ptd/*.[1-8] daemon/*.[1-8] decoder/*.[1-8] ctl/*.[1-8]; do
	out=$(mandoc -Tlint -W warning "$page") || fail "$out"
	grep -q '^\.Sh EXAMPLES$' "$page" || fail "$page has no EXAMPLES"
	n=$((${n:-0} + 1))
done
[[ $n -ge 6 ]] || fail "only $n pages"
echo "$n pages without a warning, with examples"

# in_help PROGRAM: its options, as --help lists them; of ptdecode, the help of each verb does.
in_help() {
	if [[ $1 == ptdecode ]]; then
		for verb in $("$O/ptdecode" --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
			"$O/ptdecode" help "$verb"
		done
	else
		"$O/$1" --help
	fi | sed -nE 's/^ +(-[a-zA-Z], )?(--[a-z0-9-]+).*/\1 \2/p' | tr -s ', ' '\n' | grep . | sort -u
}

# in_page PAGE: its options. A flag follows "Fl", or if the item begins with one, a comma, in the items of a list.
in_page() {
	awk '/^\.It / {
		for (i = 2; i <= NF; i++)
			if ($(i - 1) == "Fl" || ($2 == "Fl" && $(i - 1) == "," && $i ~ /^-?[a-z]/))
				print "-" $i
	}' "$1" | sort -u
}

# same WHAT: the two lists that are files in $T.
same() {
	[[ -s $T/help && -s $T/page ]] || fail "$1: one list is empty"
	diff "$T/help" "$T/page" >"$T/diff" ||
		fail "$1: only in --help (<), only in the page (>): $(grep '^[<>]' "$T/diff" | tr '\n' ' ')"
	echo "$1: $(wc -l <"$T/help") of them in both"
}

for page in daemon/ptd.8 ctl/ptctl.1 decoder/ptdecode.1; do
	program=$(basename "${page%.[1-8]}")
	in_help "$program" >"$T/help"
	in_page "$page" >"$T/page"
	same "options of $program"
done

"$O/ptdecode" --help | sed -nE 's/^  ([a-z]+) .*/\1/p' | sort -u >"$T/help"
sed -n '/^\.Sh QUESTIONS/,/^\.Sh LOGS/s/^\.It Cm \([a-z]*\).*/\1/p' decoder/ptdecode.1 | sort -u >"$T/page"
same "verbs and formats of ptdecode"

"$O/ptctl" --help | sed -nE 's/^  ([a-z]+)( .*)?$/\1/p' | sort -u >"$T/help"
sed -nE 's/^\.It Cm ([a-z]+)( .*)?$/\1/p' ctl/ptctl.1 | sort -u >"$T/page"
same "verbs of ptctl"

sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.Cm //p' ctl/ptctl.1 | sort -u >"$T/page"
same "verbs in the synopsis of ptctl"
