# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of ptd for bash.

_ptd() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=

	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	--config)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--runtime-dir | --state-dir)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
		return
		;;
	--source) words='auto emu pt' ;;
	*) words='--config --runtime-dir --state-dir --source --parent --until-eof -h --help --version' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _ptd ptd
