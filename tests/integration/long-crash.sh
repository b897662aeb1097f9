#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-crash.sh at every point there is.
CRASH_POINTS=all exec "$(dirname "$0")/test-crash.sh"
