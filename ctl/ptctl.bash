# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of ptctl for bash.

# Complete with files, so that bash appends a slash or a blank.
_ptctl_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$@")
}

# Complete the command of record, which begins at word $1.
_ptctl_command() {
	local cur=${COMP_WORDS[COMP_CWORD]}

	if declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	elif ((COMP_CWORD == $1)); then
		_ptctl_files -c -- "$cur"
	else
		_ptctl_files -f -- "$cur"
	fi
}

_ptctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verbs='status check metrics record snapshot trigger pause resume list info rm keep reload help'
	local verb= host=() socket=() words= i

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-H | --host)
			((++i < COMP_CWORD)) && host=(-H "${COMP_WORDS[i]}")
			;;
		--socket)
			((++i < COMP_CWORD)) && socket=(--socket "${COMP_WORDS[i]}")
			;;
		-*) ;;
		*)
			verb=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	if [[ $verb == record ]]; then
		for ((i++; i < COMP_CWORD; i++)); do
			case ${COMP_WORDS[i]} in
			-o | --output | --then | --when | --count) ((i++)) ;;
			--)
				_ptctl_command $((i + 1))
				return
				;;
			-*) ;;
			*)
				_ptctl_command "$i"
				return
				;;
			esac
		done
	fi

	case $verb:$prev in
	:-H | :--host)
		declare -F _known_hosts_real >/dev/null && _known_hosts_real -a -- "$cur"
		return
		;;
	:--socket)
		_ptctl_files -f -- "$cur"
		return
		;;
	record:-o | record:--output | snapshot:-o | snapshot:--output | info:--journal)
		_ptctl_files -d -- "$cur"
		return
		;;
	snapshot:--pid) words=$(cd /proc && printf '%s ' [0-9]*) ;;
	record:--then | snapshot:--then) words=$(ptdecode --help 2>/dev/null | sed -nE '/^Export/q; s/^  ([a-z]+) .*/\1/p')' export' ;;
	snapshot:--unit) words=$(systemctl list-units --no-legend --plain --type=service,scope,slice 2>/dev/null | cut -d' ' -f1) ;;
	snapshot:--cpu | snapshot:--cgroup | snapshot:--trigger | record:--count | trigger:--comm | trigger:--count | trigger:--interval | trigger:--delay | info:--last) return ;;
	record:--when) words='enter: signal: exit: exit:failure' ;;
	*)
		case $verb in
		'') words="$verbs -H --host --socket --json -h --help --version" ;;
		status | list) words='--json -h --help' ;;
		check) words='--prove -o --output --json -h --help' ;;
		metrics) words='--http -h --help' ;;
		record) words='-o --output --then --private --timing --jit --when --count -h --help --' ;;
		snapshot) words='-o --output --pid --unit --cgroup --cpu --trigger --then --json -h --help' ;;
		trigger) words='--comm --count --interval --delay --remove --json -h --help' ;;
		info) words='--core --last --journal --json -h --help' ;;
		keep) words='--release -h --help' ;;
		*) words='-h --help' ;;
		esac
		case $verb:$cur in
		:-* | *:-*) ;;
		:* | help:*) words=$verbs ;;
		record:*)
			_ptctl_files -c -- "$cur"
			return
			;;
		trigger:*) words='enter: return: longer: signal: exit: exit:failure core oom' ;;
		info:* | rm:* | keep:*)
			words="latest $("${COMP_WORDS[0]}" "${host[@]}" "${socket[@]}" list 2>/dev/null | awk 'NR > 1 { print $1 }')"
			;;
		*) words= ;;
		esac
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _ptctl ptctl
