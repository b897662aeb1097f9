/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Page
 *
 * The page of the report, which is the same for all traces: page.html with its style sheet and its
 * scripts, which lie beside it and are part of the program. It is written in two pieces, between
 * which the data stand as elements of the page.
 *
 * A policy in the page's head lets a browser run these scripts and use this style sheet only, and
 * fetch nothing at all: whatever the names of functions are, they stay texts.
 */

#include "base/base.h"
#include "ptd/sink.h"

/* Write the page up to the data, or what follows them. Return: 0 or negative errno. */
_must_check_ int page_put_head(struct ptd_output *output);
_must_check_ int page_put_tail(struct ptd_output *output);
