#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptctl -H: the shell of the other machine must see the arguments as the user wrote them. A stand-in
# for ssh notes its arguments and has a shell run the command here.
. "$(dirname "$0")/lib/common.sh"

mkdir "$T/bin" "$T/there"
cat >"$T/bin/ssh" <<STUB
#!/bin/bash
printf '%s\n' "\$@" >"$T/ssh"
[[ \$* != *unreachable* ]] || exit 255
PATH=$T/there:\$PATH exec sh -c "\${!#}"
STUB
cat >"$T/there/ptctl" <<STUB
#!/bin/bash
printf '[%s]' "\$@"
exit 6
STUB
chmod +x "$T/bin/ssh" "$T/there/ptctl"
PATH=$T/bin:$PATH
export PTD_SOCKET=/of/this/machine

# there STATUS OUTPUT ARG...: what ptctl prints and how it ends.
there() {
	local status=$1 expected=$2 out r
	shift 2
	out=$("$O/ptctl" "$@" 2>"$T/stderr" </dev/null)
	r=$?
	[[ $r -eq $status ]] || fail "$*: exit status $r instead of $status: $(cat "$T/stderr")"
	[[ $out == "$expected" ]] || fail "$*: expected \"$expected\", got: $out"
}

echo "--- arguments"
# shellcheck disable=SC2016
there 6 '[info][it'"'"'s $HOME "`a`" *]' -H web7 info 'it'"'"'s $HOME "`a`" *'
[[ $(head -3 "$T/ssh") == $'-x\n-n\nssh://web7' ]] || fail "ssh was given $(cat "$T/ssh")"
there 6 '[--socket][/its own][--json][list]' --socket '/its own' --json --host admin@web7:2222 list
grep -qx 'ssh://admin@web7:2222' "$T/ssh" || fail "ssh was given $(cat "$T/ssh")"
there 6 $'[record][-o][x y][--][sh][-c][a\nb][]' -H '[::1]' record -o 'x y' -- sh -c $'a\nb' ''
! grep -qx -- -n "$T/ssh" || fail "the recorded program has no standard input"
there 6 '[info][x]' -H -oProxyCommand=false info x
grep -qx 'ssh://-oProxyCommand=false' "$T/ssh" || fail "a host was taken for an option: $(cat "$T/ssh")"

echo "--- without ssh, without the machine"
there 3 '' -H unreachable status
PATH=$T/none there 3 '' -H web7 status
grep -q "ssh, which -H needs, cannot be executed" "$T/stderr" || fail "said: $(cat "$T/stderr")"

echo "--- the real verbs"
unset PTD_SOCKET
start_ptd AuxSize=1M
ln -sf "$(realpath "$O/ptctl")" "$T/there/ptctl"
unset PTD_SOCKET
id=$("$O/ptctl" -H web7 --socket "$T/run/control" snapshot -o "$T/copy" 2>/dev/null) || fail "snapshot"
[[ -e $T/copy/manifest ]] || fail "no copy"
there 0 "$("$O/ptctl" --socket "$T/run/control" --json list)" -H web7 --socket "$T/run/control" --json list
[[ $("$O/ptctl" -H web7 --socket "$T/run/control" list) == *"$id"* ]] || fail "the snapshot is not listed"
echo ok
