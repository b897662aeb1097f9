#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test-lines.sh, also with SQLite.
REAL=1 exec "$(dirname "$0")/test-lines.sh"
