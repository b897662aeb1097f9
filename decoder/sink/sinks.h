/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Every sink's table of operations. */

#include "decoder/sink/sink.h"

extern const struct sink_ops sink_addresses;
extern const struct sink_ops sink_autofdo;
extern const struct sink_ops sink_bolt;
extern const struct sink_ops sink_branches;
extern const struct sink_ops sink_callgrind;
extern const struct sink_ops sink_calls;
extern const struct sink_ops sink_chrome;
extern const struct sink_ops sink_collapsed;
extern const struct sink_ops sink_crash;
extern const struct sink_ops sink_drmemtrace;
extern const struct sink_ops sink_functions;
extern const struct sink_ops sink_fxt;
extern const struct sink_ops sink_html;
extern const struct sink_ops sink_latency;
extern const struct sink_ops sink_lcov;
extern const struct sink_ops sink_ovni;
extern const struct sink_ops sink_pprof;
extern const struct sink_ops sink_probes;
extern const struct sink_ops sink_sideband;
extern const struct sink_ops sink_stacks;
extern const struct sink_ops sink_summary;
extern const struct sink_ops sink_text;
extern const struct sink_ops sink_xray;
