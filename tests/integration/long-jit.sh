#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-jit, with programs that make much code: node with a worker, whose JIT uses its addresses
# again; PHP with many traces; Erlang, which compiles all it loads.
. "$(dirname "$0")/common.sh"
. tests/integration/jit.sh
need qemu-x86_64
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds"

run_node '
	const { Worker, isMainThread } = require("worker_threads");
	let sum = 0;
	for (let i = 0; i < 800; i++) {
		const f = new Function("n", "let s = " + i + "; for (let k = 0; k < n; k++) s ^= k * " + i + "; return s");
		for (let k = 0; k < 20; k++) sum += f(20);
	}
	console.log(sum);
	if (isMainThread) for (let i = 0; i < 1; i++) new Worker(__filename)'
run_php '
	function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
	function mix($k) {
		$s = 0;
		for ($i = 0; $i < $k; $i++) {
			if ($i % 3 == 0) $s += $i; elseif ($i % 5 == 0) $s ^= $i; else $s -= 1;
		}
		return $s;
	}
	echo fib(23), "\n";
	for ($j = 0; $j < 300; $j++) $t = mix(100 + $j);
	$a = [];
	for ($j = 0; $j < 20000; $j++) { $k = "k" . ($j % 50); $a[$k] = ($a[$k] ?? 0) + $j; ksort($a); }
	echo $t, array_sum($a), "\n"'
run_erlang 22
exit 0
