# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion of ptdecode for bash.

# Complete with files, so that bash appends a slash or a blank.
_ptdecode_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen "$@")
}

# An input: a file, or a snapshot in the recorder's state directory.
_ptdecode_input() {
	local cur=${COMP_WORDS[COMP_CWORD]} state=${PTD_STATE_DIR:-/var/lib/ptd} words=latest i

	for ((i = 1; i + 1 < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != --state-dir ]] || state=${COMP_WORDS[i + 1]}
	done
	for i in "$state"/snapshots/*/manifest; do
		[[ ! -e $i ]] || i=${i%/manifest} words+=" ${i##*/}"
	done
	_ptdecode_files -f -W "$words" -- "$cur"
}

_ptdecode() {
	local cur=${COMP_WORDS[COMP_CWORD]} words=

	COMPREPLY=()
	case ${COMP_WORDS[COMP_CWORD - 1]} in
	-f | --format) words='text summary calls functions latency stacks crash branches autofdo bolt collapsed pprof chrome callgrind fxt html drmemtrace addresses sideband xray ovni diff' ;;
	-e | --engine) words='flow insn' ;;
	-o | --output | --core | --instr-map | --raw-pt | --raw-pages | --raw-elf | --raw-code)
		_ptdecode_files -f -- "$cur"
		return
		;;
	--debug-dir | --buildid-dir | --symfs | --state-dir | --ovni)
		_ptdecode_files -d -- "$cur"
		return
		;;
	--cpu-model | --mtc-freq | --nom-freq | --cpuid-15 | --filter | --max-output | --max-spill | --threads) return ;;
	--time | --cpu | --pid | --tid | --comm | --symbol | --object | --last) return ;;
	*)
		if [[ $cur != -* ]]; then
			_ptdecode_input
			return
		fi
		words='-f --format -o --output -e --engine --verify --debug-dir --lines --inlines --buildid-dir --symfs
			--debuginfod --core --instr-map --ovni --state-dir --force --max-output --max-spill --threads --cpu-model --mtc-freq --nom-freq --cpuid-15
			--time --cpu --pid --tid --comm --symbol --object --last
			-h --help --version --raw-pt --raw-pages --raw-elf --raw-code --filter'
		;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _ptdecode ptdecode
