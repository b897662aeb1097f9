/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program that throws and catches 1000 exceptions, through frames with destructors, by value, by
 * base class, and once more from a handler.
 */

#include <cstdio>
#include <stdexcept>
#include <string>

namespace
{

unsigned n_destroyed;

struct guard {
	std::string name;

	explicit guard(int depth) : name("guard " + std::to_string(depth))
	{
	}
	~guard()
	{
		n_destroyed += name.size() > 6;
	}
};

struct special : std::runtime_error {
	int code;

	explicit special(int c) : std::runtime_error("special"), code(c)
	{
	}
};

__attribute__((noinline)) void descend(int depth, int i)
{
	guard g(depth);

	if (depth > 0)
		descend(depth - 1, i);
	else if (i % 3 == 0)
		throw special(i);
	else if (i % 3 == 1)
		throw i;
	else
		throw std::out_of_range("beyond");
}

__attribute__((noinline)) void rethrow(int i)
{
	try {
		descend(i % 5, i);
	} catch (const std::out_of_range &) {
		throw;
	}
}

__attribute__((noinline)) unsigned catch_one(int i)
{
	try {
		rethrow(i);
	} catch (const special &e) {
		return static_cast<unsigned>(e.code);
	} catch (const std::exception &e) {
		return static_cast<unsigned>(std::string(e.what()).size());
	} catch (int value) {
		return static_cast<unsigned>(value);
	}
	return 0;
}

} // namespace

int main()
{
	unsigned sum = 0, n = 0;

	for (int i = 0; i < 1000; i++, n++)
		sum += catch_one(i);
	std::printf("throw: %u caught, %u destroyed, sum %u\n", n, n_destroyed, sum);
	return n == 1000 ? 0 : 1;
}
