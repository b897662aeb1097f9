#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# All servers of lib/servers.sh: each serves as many requests recorded as by itself, and what is decoded equals the
# log. What is not installed is left out, and that is said. PTD_SERVERS="nginx php" runs these only, PTD_ENGINES=flow
# compares what this engine lists only: the other one takes ten times as long.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/servers.sh
need qemu-x86_64 curl
declare -A needs=(
	[redis]=redis-check-rdb [haproxy]=haproxy [nginx]=nginx [php]="$(compgen -c php-fpm | head -n 1)" [gunicorn]=gunicorn
	[java]=javac [node]=node [initdb]=$postgres/initdb [postgresql]=$postgres/initdb
)
failed=()
for server in ${PTD_SERVERS:-redis haproxy nginx php gunicorn java node initdb postgresql}; do
	command -v "${needs[$server]:-none}" >/dev/null || { echo "$server: not installed"; continue; }
	serve $server || failed+=($server)
done
[[ ${#failed[@]} == 0 ]] || fail "${failed[*]}"
