# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What a process costs, for the guest's shell and for bash. All by what the shell itself can do: whoever is
# recorded would have to hear of programs that are started to look at it.
mkfifo /tmp/never.$$
exec 9<>/tmp/never.$$
rm /tmp/never.$$
doze() { # SECONDS
	read -r -t "$1" n <&9 || true
}

look() { # PID: ns on a CPU of all its threads; switches and new tasks of the machine; hundredths of a second
	ns=0
	for task in /proc/$1/task/*; do
		read -r n rest <$task/schedstat
		ns=$((ns + n))
	done
	while read -r key n rest; do
		case $key in
		ctxt) switches=$n ;;
		processes) tasks=$n ;;
		esac
	done </proc/stat
	read -r t rest </proc/uptime
	t=${t%.*}${t#*.}
}

cost() { # PID SECONDS: what it was in that time, as numbers: ns, switches, tasks and t
	look $1
	set -- $1 $2 $ns $switches $tasks $t
	doze $2
	look $1
	ns=$((ns - $3)) switches=$((switches - $4)) tasks=$((tasks - $5)) t=$((t - $6))
}
