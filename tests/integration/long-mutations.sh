#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# 20,000 seeds of what test-mutations does.
[[ -z ${PTD_ASAN:-} ]] && export N_SMALL=16000 N_LARGE=1000 N_JIT=3000 ||
	export N_SMALL=1500 N_LARGE=50 N_JIT=500
exec "$(dirname "$0")/test-mutations.sh"
