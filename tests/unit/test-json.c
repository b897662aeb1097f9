/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* JSON: exactly what is written. Python reads the documents of the sinks in tests/integration. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/json.h"
#include "decoder/sink/output.h"

static void assert_document(struct output *output, const char *expected)
{
	_cleanup_(freep) char *text = strndup((const char *)output->buffer, output->n_used);

	assert_string_equal(text, expected);
	output_deinit(output);
}

static void document(void **state)
{
	struct output output = output_memory();
	struct json json = json_begin(&output);

	(void)state;
	json_object(&json, NULL);
	json_text(&json, "format", "demo");
	json_null(&json, "nothing");
	json_array(&json, "empty");
	json_close(&json);
	json_array(&json, "rows");
	for (uint64_t i = 0; i < 2; i++) {
		json_object(&json, NULL);
		json_number(&json, "n", i ? UINT64_MAX : 0);
		json_signed(&json, "m", i ? INT64_MIN : 1);
		json_bool(&json, "is", i);
		json_address(&json, "at", i << 63);
		json_array(&json, "list");
		for (uint64_t k = 0; k < i + 1; k++)
			json_number(&json, NULL, k);
		json_close(&json);
		json_close(&json);
	}
	json_close(&json);
	json_object(&json, "last");
	json_text(&json, "none", NULL);
	json_close(&json);
	json_close(&json);
	assert_document(
	    &output, "{\n"
		     " \"format\": \"demo\",\n"
		     " \"nothing\": null,\n"
		     " \"empty\": [],\n"
		     " \"rows\": [\n"
		     "  {\"n\": 0, \"m\": 1, \"is\": false, \"at\": \"0x0\", \"list\": [0]},\n"
		     "  {\"n\": 18446744073709551615, \"m\": -9223372036854775808, \"is\": true, "
		     "\"at\": \"0x8000000000000000\", \"list\": [0, 1]}\n"
		     " ],\n"
		     " \"last\": {\n"
		     "  \"none\": null\n"
		     " }\n"
		     "}\n");
}

/* Names that others choose. */
static void texts(void **state)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
		{ "", "\"\"" },
		{ "a \"b\" \\c", "\"a \\\"b\\\" \\\\c\"" },
		{ "\t\n\x01\x7f", "\"\\u0009\\u000a\\u0001\\u007f\"" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "x\x80\xff"
		  "y",
		  "\"x\\ufffd\\ufffdy\"" },
		{ "\xc2\x9b"
		  "2J",
		  "\"\\ufffd\\ufffd2J\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "cut \xe2\x82", "\"cut \\ufffd\\ufffd\"" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct output output = output_memory();
		struct json json = json_begin(&output);

		json_text(&json, NULL, rows[i].text);
		assert_document(&output, rows[i].expected);
	}
}

/* No text of a document in a page can end the script that it lies in. */
static void in_html(void **state)
{
	struct output output = output_memory();
	struct json json = json_begin(&output);

	(void)state;
	json.in_html = true;
	json_text(&json, NULL, "</script><!--&\"\\");
	assert_document(&output, "\"\\u003c/script\\u003e\\u003c!--\\u0026\\\"\\\\\"");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(document),
		cmocka_unit_test(in_html),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
