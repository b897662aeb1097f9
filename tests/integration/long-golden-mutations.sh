#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# 100,000 seeds of what test-golden-mutations does.
[[ -z ${PTD_ASAN:-} ]] && export N=100000 || export N=20000
exec "$(dirname "$0")/test-golden-mutations.sh"
