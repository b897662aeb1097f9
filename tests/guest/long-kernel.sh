#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-kernel.sh with all that it can do.
ALL=1 exec "$(dirname "$0")/test-kernel.sh"
