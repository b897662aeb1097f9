/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * As calltruth.c, for C++: exceptions through 10 functions, through functions with destructors,
 * that are thrown again, and that are thrown out of a callback of the C library.
 *
 *	calltruth-throw LOG
 */

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#define HERE __attribute__((noipa))

namespace
{

std::vector<std::pair<char, const char *>> notes;

void note(char what, const char *name)
{
	notes.emplace_back(what, name);
}

/* What an exception passes notes that, as what destructors do: it is left in the end. */
HERE void throw_it(int i)
{
	note('+', "throw_it");
	note('-', "throw_it");
	if (i % 2)
		throw std::runtime_error("odd");
	throw i;
}

/* Ten functions without anything to clean up: who catches notes that they were left. */
template <int N> HERE void pass(int i)
{
	note('+', "pass");
	if constexpr (N == 0)
		throw_it(i);
	else
		pass<N - 1>(i);
	note('-', "pass");
}

struct guard {
	const char *name;

	explicit guard(const char *n) : name(n)
	{
		note('+', name);
	}
	~guard()
	{
		note('-', name);
	}
};

HERE void clean(int depth, int i)
{
	guard g("clean");
	std::string s(static_cast<size_t>(depth) + 20, 'x');

	if (depth > 0)
		clean(depth - 1, i);
	else
		throw_it(i + static_cast<int>(s.size()) * 0);
}

HERE void again(int i)
{
	guard g("again");

	try {
		clean(4, i);
	} catch (const std::runtime_error &) {
		throw;
	}
}

HERE int catch_passed(int i)
{
	int result = 0;

	note('+', "catch_passed");
	try {
		pass<9>(i);
	} catch (const std::exception &e) {
		for (int n = 0; n < 10; n++)
			note('-', "pass");
		result = static_cast<int>(std::string(e.what()).size());
	} catch (int value) {
		for (int n = 0; n < 10; n++)
			note('-', "pass");
		result = value;
	}
	note('-', "catch_passed");
	return result;
}

HERE int catch_again(int i)
{
	guard g("catch_again");

	try {
		again(i);
	} catch (...) {
		return 1;
	}
	return 0;
}

int compare(const void *, const void *)
{
	note('+', "compare");
	note('-', "compare");
	throw 5;
}

HERE void catch_callback()
{
	int numbers[] = { 3, 1, 2 };

	note('+', "catch_callback");
	try {
		std::qsort(numbers, 3, sizeof(int), compare);
	} catch (int) {
	}
	note('-', "catch_callback");
}

} // namespace

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	notes.reserve(100000);
	for (int i = 0; i < 20; i++) {
		catch_passed(i);
		catch_again(i);
		catch_callback();
	}
	FILE *f = std::fopen(argv[1], "we");
	if (!f)
		return 1;
	for (const auto &n : notes)
		std::fprintf(f, "%d %c%s\n", static_cast<int>(gettid()), n.first, n.second);
	return std::fclose(f) != 0;
}
