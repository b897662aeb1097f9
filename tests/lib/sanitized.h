/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sanitized
 *
 * Whether this build checks its memory, and so is many times slower and takes much more of it. gcc
 * tells by a macro, clang in its own way.
 */

#ifdef __has_feature
#define IS_SANITIZED __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif
