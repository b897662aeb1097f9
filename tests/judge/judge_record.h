/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Judge: kinds of records
 *
 * Which kinds of records may be in which traces.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Return: why records of @type, which is no type that each file may have, are not allowed in a file
 *         of type @file_type; NULL if they are.
 */
const char *record_type_refusal(uint16_t type, uint64_t file_type);

/*
 * Return: why markers of @kind are not allowed after the header of a file of type @file_type; NULL
 *         if they are. A file may have chunks if it is a zip file.
 */
const char *record_marker_refusal(uint16_t kind, uint64_t file_type, bool is_zip);
