#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Two servers serve as many requests recorded as by themselves, and what is decoded equals the log. long-servers.sh
# has more of them.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/servers.sh
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds: see test-small"
need qemu-x86_64 redis-check-rdb nginx curl
serve redis || exit
serve nginx || exit
