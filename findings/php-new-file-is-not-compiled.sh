#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that PHP compiles a function if its JIT compiler says that it is enabled and on. It compiles none of
# a file that is younger than two seconds, which it does not cache (opcache.file_update_protection): a script that was
# written and run at once, as by a test or a deploy, is interpreted to its end, its jitdump has no function of it, and
# what opcache_get_status() says of the JIT compiler is the same but for the room that is left.
#
# Depended on by: tests/integration/test-runtimes.sh, and ptd-runtimes(7).
. "$(dirname "$0")/lib.sh"
debian_package php8.2-cli php 8.2.36-1~deb12u1
php --version | head -n 1

# run NAME: what it says of its JIT compiler, and how many functions of the script the jitdump has.
run() {
	php -d opcache.enable_cli=1 -d opcache.jit_buffer_size=16M -d opcache.jit=function -d opcache.jit_debug=32 "$1" >said 2>&1 &
	wait $! || missing "php: $(tail -n 1 said)"
	mv "/tmp/jit-$!.dump" dump 2>/dev/null || : >dump
	echo "$1: $(cat said), $(jitdump dump | grep -c 'fib') functions of the script in the jitdump"
}
for name in new old; do
	cat >$name.php <<-'EOT'
		<?php
		function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
		fib(15);
		$status = opcache_get_status();
		echo $status["jit"]["enabled"] && $status["jit"]["on"] ? "on" : "off", ", ", count($status["scripts"] ?? []), " cached";
	EOT
done
touch -d '1 hour ago' old.php
run old.php | tee old
touch new.php
run new.php | tee new
grep -q ": on, 1 cached, [1-9]" old || changed "an older file is not compiled"
grep -q ": on, 0 cached, 0 functions" new || changed "a new file is compiled, or it is said that it is not"
