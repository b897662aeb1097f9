#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The same as test-live, at many more moments.
N=30 SEED=${SEED:-$RANDOM} exec "$(dirname "$0")/test-live.sh"
