#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-lcov.sh, also with SQLite and bzip2.
REAL=1 exec "$(dirname "$0")/test-lcov.sh"
