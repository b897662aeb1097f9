#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What bash proposes behind our programs: all that their --help has, and nothing else.
. "$(dirname "$0")/lib/common.sh"

# As installed, into a shell that has loaded nothing else.
make -s install O="$O" VERSION=dev DESTDIR="$T/dest" prefix=/usr >"$T/install.log" 2>&1 || fail "$(cat "$T/install.log")"
for program in ptd ptctl ptdecode; do
	. "$T/dest/usr/share/bash-completion/completions/$program" || fail "completion of $program"
done
PATH=$O:$PATH

# proposed PROGRAM WORD...: for the last of the words, sorted, each on its line.
proposed() {
	local function COMPREPLY=() COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	function=$(complete -p "$1" | sed 's/.*-F \([^ ]*\) .*/\1/')
	"$function" "$1" "${!#}" "${@: -2:1}"
	printf '%s\n' "${COMPREPLY[@]}" | grep . | sort -u
}

# options CMD...: those that its help lists.
options() {
	"$@" | grep -oE '^ +(-[a-zA-Z](, --[a-z0-9-]+)?|--[a-z0-9-]+(=no)?)( |$)' | grep -oE -- '-[a-zA-Z0-9-]+(=no)?' | sort -u
}

same() {
	[[ -n $2 ]] || fail "$1: the help has none, nothing tested"
	[[ $2 == "$3" ]] || fail "$1: the help has"$'\n'"$2"$'\n'"and proposed is"$'\n'"$3"
}

# is WHAT "PROPOSAL..." WORD...
is() {
	local got
	got=$(proposed "${@:3}" | tr '\n' ' ')
	[[ $got == "$2 " || -z $2$got ]] || fail "$1: proposed is \"$got\", not \"$2\""
}

echo "--- options and verbs"
same "ptd" "$(options ptd --help)" "$(proposed ptd -)"
same "ptdecode" "$(options ptdecode --help)" "$(proposed ptdecode -)"
verbs=$(ptctl --help | sed -nE 's/^  ([a-z]+).*/\1/p' | sort)
same "verbs" "$verbs" "$(proposed ptctl '')"
same "verbs behind help" "$verbs" "$(proposed ptctl help '')"
same "options of all" "$(options ptctl --help)" \
	"$(for verb in '' $verbs; do proposed ptctl $verb -; done | grep -vx -- -- | sort -u)"
for verb in $verbs; do
	json=
	! ptctl $verb --help | grep -q '^Usage: .*--json' || [[ $verb == record ]] || json=--json
	same "options of $verb" "$({ options ptctl $verb --help; printf '%s\n' -h --help $json; } | grep . | sort -u)" \
		"$(proposed ptctl $verb - | grep -vx -- --)"
done
words() { grep -oE '^  [a-z]+ ' | tr -d ' ' | sort; }
exports=$(ptdecode help export | words)
verbs=$(ptdecode --help | sed '/^Export/q' | words)
same "verbs of ptdecode" "$(printf '%s\n' $verbs export help | sort)" "$(proposed ptdecode '')"
same "formats" "$exports" "$(proposed ptdecode export '')"
same "formats" "$(ptdecode --help | sed '1,/^Export/d' | words)" "$exports"
for verb in $verbs $exports; do
	[[ $exports != *$verb* ]] || verb="export $verb"
	ptdecode $verb --help | cmp - <(ptdecode help $verb) || fail "help $verb"
	same "options of $verb" "$(options ptdecode help $verb)" "$(proposed ptdecode $verb -)"
done
(($(ptdecode --help | wc -l) <= 80)) || fail "ptdecode --help is longer than a screen"
is "a verb's beginning" "record reload resume" ptctl --json re
is "sources" "auto emu pt" ptd --source ''
is "engines" "flow insn" ptdecode text -e ''
is "words of a verb's option" "none zip" ptdecode export drmemtrace --compress ''
is "more words" "instructions ms ns s us" ptdecode export collapsed --unit ''
is "a number of a verb's option" "" ptdecode functions --rows ''
is "a verb of another output" "sideband stacks summary" ptdecode text -o x --also s
is "a verb for ptctl" "sideband stacks summary" ptctl record --then s
is "a number" "" ptctl snapshot --cpu ''

echo "--- files, processes"
mkdir -p "$T/w/dir" && cd "$T/w" && touch file fine
is "files" "dir file fine" ptd --config ''
is "directories" "dir" ptd --state-dir ''
is "directories" "dir" ptctl snapshot -o ''
is "files of a command" "file fine" ptctl record -o x -- cat fi
is "a command" "ptdecode" ptctl record ptdec
is "a command's own options" "" ptctl record cat --he
proposed ptctl snapshot --pid "$$" | grep -qx $$ || fail "this process is not proposed"

echo "--- snapshots"
cd "$OLDPWD" || exit 1
start_ptd AuxSize=1M
read -r first second <<<"$(ptctl snapshot 2>/dev/null) $(ptctl snapshot 2>/dev/null)"
[[ -n $second ]] || fail "no snapshots"
for verb in info rm keep; do
	is "snapshots" "$first $second latest" ptctl $verb ''
done
is "a second one" "$second" ptctl rm "$first" "${second%?}"
cd "$T/w" || exit 1
is "inputs" "$first $second dir file fine latest" ptdecode text --state-dir "$T/state" ''
PTD_STATE_DIR=$T/state is "inputs" "$first $second" ptdecode text 2
PTD_STATE_DIR=$T/none is "inputs without a recorder" "dir file fine latest" ptdecode export fxt ''
unset PTD_SOCKET
is "of another recorder" "$first $second latest" ptctl --socket "$T/run/control" info ''
is "of none" "latest" ptctl --socket "$T/none" info ''
echo ok
