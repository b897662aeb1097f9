#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-jit, with programs that make much code: node with a worker, whose JIT uses its addresses
# again; PHP with many traces; Erlang, which compiles all it loads.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need_large

run_node "$(node_program 800)"
run_php "$(php_program 23 300)"
run_erlang 22
exit 0
