#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A user runs programs from a file server that does not answer whoever else asks it, so that the collector's
# workers hang and cannot even be killed. That costs him copies of these programs, and others nothing: programs of
# root and of another user are kept, also those that the user executes, too. How long a snapshot takes is printed.
# STUCK_SNAPSHOTS is how many there are of each kind; long-stuckfs.sh takes more.
#
# Alone: what the collector reads has to be read in time.
. "$(dirname "$0")/lib/attack.sh"
need "${CC:-cc}"

server=
stuck_leave() {
	attack_over
	kill $(jobs -p) 2>/dev/null
	[[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null
	umount -l "$T"/stuck* 2>/dev/null
	attack_leave
}
trap stuck_leave EXIT

# program ID FILE: one that runs until it is killed, or ends at once if it has no argument.
program() {
	"${CC:-cc}" -O2 -Wl,--build-id="0x$(printf %040x "$1")" -x c -o "$2" - <<<'
		#include <unistd.h>
		int main(int n, char **arg) { (void)arg; while (n > 1) usleep(10000); return 0; }' || fail "cc"
	chmod 755 "$2"
}

# One that maps its jitdump in the directory that it is given, as perf wants it, if there is one.
"${CC:-cc}" -O2 -x c -o "$T/bin/jitter" - <<<'
	#include <fcntl.h>
	#include <stdio.h>
	#include <sys/mman.h>
	#include <unistd.h>
	int main(int n, char **arg)
	{
		char path[4096];
		int fd;
		snprintf(path, sizeof(path), "%s/jit-%d.dump", arg[n - 1], (int)getpid());
		fd = open(path, O_RDONLY);
		if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
			return 0;
		for (;;)
			usleep(10000);
	}' || fail "cc"
mkdir -m 755 "$T/stuck" "$T/disk"
for name in a b c d short; do
	program 1 "$T/disk/$name"
done
program 2 "$T/private/others"
chmod 755 "$T/private"
n_programs=10
n_snapshots=${STUCK_SNAPSHOTS:-2}

# The user's programs: some that stay, and others that end at once.
load() { # DIRECTORY
	set -m
	as_nobody bash -c '
		for name in a b c d; do "$1/$name" stay & done
		"$2" "$1" &
		while :; do "$1/short"; sleep 0.05; done' - "$1" "$T/bin/jitter" &
	attacker=$!
	set +m
}

# snapshots NAME DIRECTORY
snapshots() {
	local name=$1 directory=$2 i begun id others users roots shared
	attack_start pt SwitchSize=8M SidebandMax=64M
	load "$directory"
	setpriv --reuid $OTHER --regid $OTHER --clear-groups "$T/private/others" stay &
	others=$!
	sleep 1
	for ((i = 1; i <= n_snapshots; i++)); do
		n_programs=$((n_programs + 1))
		program $n_programs "$T/bin/root.$n_programs"
		program $((n_programs + 1000)) "$T/bin/shared.$n_programs"
		# The user has it waiting behind what cannot be read, before root executes it.
		setpriv --reuid $NOBODY --regid $NOBODY --clear-groups "$T/bin/shared.$n_programs" stay &
		users=$!
		sleep 0.2
		"$T/bin/root.$n_programs" stay &
		roots=$!
		"$T/bin/shared.$n_programs" stay &
		shared=$!
		sleep 0.3
		begun=${EPOCHREALTIME/[.,]/}
		id=$(timeout -k 1 $HUNG_S "$O/ptctl" snapshot 2>"$T/err") || fail "$name: no snapshot: $(cat "$T/err"; tail -n 5 "$T/ptd.log")"
		echo "$name: snapshot $i took $(((${EPOCHREALTIME/[.,]/} - begun) / 1000)) ms"
		kill $roots $shared $users
		wait $roots $shared $users 2>/dev/null
		map=$T/state/snapshots/$id/objects.map
		for kept in "$T/bin/root.$n_programs" "$T/bin/shared.$n_programs" "$T/private/others"; do
			# By its content, if the user's mapping of it could not be looked at.
			grep -q "^\(sha256:\)\?[0-9a-f]\{40,64\}	$kept$" "$map" || fail "$name: $kept is not kept: $(cat "$map"; tail -n 5 "$T/ptd.log")"
		done
	done
	kill $others
	wait $others 2>/dev/null
	attack_over
}

snapshots disk "$T/disk"
grep -q "^[0-9a-f]\{40\}	$T/disk/a$" "$map" || fail "what is on the disk is not kept: $(cat "$map")"

served=$T/disk/a
# serve DIRECTORY OWNER VERB...: a file server that does not answer, whose pid goes to $server.
ready_or_ended() { grep -qs ready "$T/server" || ! kill -0 $server; }

serve() {
	local directory=$1
	shift
	rm -f "$T/server" # the one before was ready
	"$O/tools/attack-stuckfs" "$directory" "$served" $NOBODY "$@" >"$T/server" 2>"$T/err" &
	server=$!
	await ready_or_ended
	if ! grep -q ready "$T/server"; then
		wait $server
		[[ $? != 77 ]] || skip "there is no FUSE: $(cat "$T/err")"
		fail "attack-stuckfs: $(cat "$T/err")"
	fi
}

stuck() { # OWNER VERB...
	serve "$T/stuck" "$@"
	snapshots "stuck $*" "$T/stuck"
	# What lives is found without looking for its name.
	[[ $* == *" "@(look|slow) ]] || grep "^- .*	$T/stuck/a$" "$map" || fail "what cannot be read is kept: $(cat "$map")"
	stop_ptd
	kill $server
	wait $server
	server=
	umount -l "$T/stuck" 2>/dev/null
}

stuck $NOBODY read
stuck $NOBODY open
stuck $NOBODY stat
stuck $NOBODY look
# What is read on, but hardly: some 5 seconds in all.
served=$T/disk/long
cp "$T/disk/a" "$served"
truncate -s 7500K "$served"
stuck $NOBODY slow
served=$T/disk/a
# It may say that its files are root's.
stuck 0 read
stuck 0 look stat open

# Of a process that has ended the kernel does not say any more whose it was. Its user can have many folders.
echo "--- programs that end at once, from eight servers"
attack_start pt SwitchSize=8M SidebandMax=64M
servers=()
for i in {1..8}; do
	mkdir -m 755 "$T/stuck.$i"
	serve "$T/stuck.$i" $NOBODY look
	servers+=($server)
	server=
done
set -m
as_nobody bash -c 'while :; do for i in {1..8}; do "$1.$i/$RANDOM"; sleep 0.02; done; done' - "$T/stuck" &
attacker=$!
set +m
sleep 3
for i in {1..10}; do
	program $((2000 + i)) "$T/private/ended.$i"
	program $((3000 + i)) "$T/bin/ended.$i"
	as_other "$T/private/ended.$i"
	"$T/bin/ended.$i"
done
sleep 1
begun=${EPOCHREALTIME/[.,]/}
id=$(timeout -k 1 $HUNG_S "$O/ptctl" snapshot 2>"$T/err") || fail "no snapshot: $(cat "$T/err")"
ms=$(((${EPOCHREALTIME/[.,]/} - begun) / 1000))
map=$T/state/snapshots/$id/objects.map
for kept in "$T"/private/ended.* "$T"/bin/ended.*; do
	grep -q "^\(sha256:\)\?[0-9a-f]\{40,64\}	$kept$" "$map" || { grep "	$kept$" "$map" || echo "$kept is not in it"; }
done >"$T/missing"
echo "a snapshot took $ms ms; of 20 programs that ended, $(wc -l <"$T/missing") are not kept"
stop_ptd
kill "${servers[@]}"
wait "${servers[@]}"
umount -l "$T"/stuck.* 2>/dev/null
attack_over
[[ ! -s $T/missing ]] || fail "files of others are not kept: $(cat "$T/missing")"
echo ok
