# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of ptdecode for bash. What it proposes is what the help of ptdecode has.

# Complete with files, so that bash appends a slash or a blank.
_ptdecode_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$@")
}

# A recording: a file, or a snapshot in the recorder's state directory.
_ptdecode_recording() {
	local cur=${COMP_WORDS[COMP_CWORD]} state=${PTD_STATE_DIR:-/var/lib/ptd} words=latest i

	for ((i = 1; i + 1 < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != --state-dir ]] || state=${COMP_WORDS[i + 1]}
	done
	for i in "$state"/snapshots/*/manifest; do
		[[ ! -e $i ]] || i=${i%/manifest} words+=" ${i##*/}"
	done
	_ptdecode_files -f -W "$words" -- "$cur"
}

# The options in the help $1; with $2, the form of the value of this option.
_ptdecode_options() {
	local line
	while IFS= read -r line; do
		[[ $line =~ ^\ \ (\ {4}|(-[a-z]),\ )(--[a-z0-9-]+(=no)?)(\ ([^\ ]+))? ]] || continue
		if (($# == 1)); then
			printf '%s %s\n' "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
		elif [[ $2 == "${BASH_REMATCH[2]}" || $2 == "${BASH_REMATCH[3]}" ]]; then
			echo "${BASH_REMATCH[6]}"
		fi
	done <<<"$1"
}

_ptdecode() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} program=${COMP_WORDS[0]}
	local all exports verbs verb= help words= value= i

	COMPREPLY=()
	all=$("$program" --help 2>/dev/null)
	exports=$("$program" help export 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')
	verbs=$(sed -nE '/^Export/q; s/^  ([a-z]+) .*/\1/p' <<<"$all")" export help"
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ " ${verbs//$'\n'/ } " != *" ${COMP_WORDS[i]} "* ]] || break
	done
	if ((i < COMP_CWORD)); then
		verb=${COMP_WORDS[i]}
		[[ $verb != export ]] || ((++i == COMP_CWORD)) || verb+=" ${COMP_WORDS[i]}"
	fi
	help=$all
	[[ -z $verb ]] || help=$("$program" help ${verb#help } 2>/dev/null) || help=
	value=$(_ptdecode_options "$help" "$prev")
	case $value in
	*VERB*) words=$verbs ;;
	*\|*) words=${value//|/ } ;;
	PATH | *FILE*)
		_ptdecode_files -f -- "$cur"
		return
		;;
	DIR)
		_ptdecode_files -d -- "$cur"
		return
		;;
	?*) return ;;
	*)
		if [[ $cur == -* ]]; then
			words=$(_ptdecode_options "$help")
		elif [[ -z $verb ]]; then
			words=$verbs
		elif [[ $verb == export ]]; then
			words=$exports
		elif [[ $verb == help ]]; then
			words="${verbs% help} $exports"
		else
			_ptdecode_recording
			return
		fi
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _ptdecode ptdecode
