#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# 20,000 seeds of what test-mutations does.
[[ -z ${PTD_ASAN:-} ]] && export N_SMALL=18000 N_LARGE=2000 || export N_SMALL=2000 N_LARGE=50
exec "$(dirname "$0")/test-mutations.sh"
