#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a jitdump is of one process, and that CLOSE is its last record. A PHP process that forks
# shares the open dump: the child notes its functions there, with its own number in the records, and when it ends
# it writes CLOSE, behind which the parent goes on.
#
# Depended on by: decoder/jit/jit.c, for which code of one process is not closed by another.
. "$(dirname "$0")/lib.sh"
debian_package php8.2-cli php 8.2.36-1~deb12u1
php --version | head -n 1
cat >fork.php <<'EOT'
<?php
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
function mix($k) { $s = 0; for ($i = 0; $i < $k; $i++) $s = ($s * 31 + $i) & 0xffff; return $s; }
function other($k) { $s = 1; for ($i = 0; $i < $k; $i++) $s ^= $i * 7; return $s; }
fib(15);
$child = pcntl_fork();
if ($child == 0) { mix(5000); exit(0); }
pcntl_waitpid($child, $status);
for ($j = 0; $j < 50; $j++) other(1000);
echo $child, "\n";
EOT
touch -d '1 hour ago' fork.php
php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=64M -d opcache.jit=tracing -d opcache.jit_debug=32 fork.php >said 2>&1 &
wait $! || missing "php: $(tail -n 1 said)"
parent=$!
mv "/tmp/jit-$parent.dump" dump || changed "no dump, or a dump of another name"
jitdump dump >records
awk -v parent=$parent -v child="$(cat said)" '
	$1 == 0 && $4 == child { of_child++ }
	$1 == 0 && $4 == parent && closed { behind++ }
	$1 == 3 { closed++ }
	END {
		print "of the child " of_child + 0 " records, CLOSE " closed + 0 " times, of the parent behind the first " behind + 0
		exit !(closed > 1 && behind > 0)
	}' records || changed "a CLOSE ends the dump"
