#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-jit, with programs that make much code: node with a worker, whose JIT uses its addresses
# again, and Erlang, which compiles all it loads.
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
run_erlang 16
exit 0
