/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Runs code at addresses where other code was a moment ago, from libraries that the test makes:
 * each has functions f0 to f3, on pages of their own.
 *
 *	churn map LIBRARY...	threads map pages of the libraries over each other's, partly over
 *				them, unmap, protect and move them, while others run what is mapped
 *	churn load A B		loads A and B in turn, at the same address, while threads run
 *
 * What a function returns must be what it returns where its library was loaded first.
 */

#define _GNU_SOURCE /* mremap(), dladdr() */

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_FUNCTIONS 4
#define N_LIBRARIES 8
#define N_THREADS   5
#define N_PLACES    3
#define N_PAGES     4 /* of a place */
#define PAGE        4096
#define N_ROUNDS    1500
#define N_LOADS     20

typedef uint32_t (*function)(uint32_t x);

/* One page of a library's file, and what its function does to INPUT. */
#define INPUT 12345
struct page {
	int fd;
	off_t offset;
	uint32_t result;
};

/* Some pages that have been mapped and unmapped for all threads; NULL: nothing is there. */
struct place {
	pthread_rwlock_t lock;
	uint8_t *at;
	const struct page *pages[N_PAGES];
};

static struct page pages[N_LIBRARIES * N_FUNCTIONS];
static size_t n_pages;
static struct place places[N_PLACES];
static atomic_bool stop;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static function function_at(const void *at)
{
	function f;

	memcpy(&f, &at, sizeof(f));
	return f;
}

static uint32_t draw(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

static const void *symbol(void *library, unsigned i)
{
	const char name[] = { 'f', (char)('0' + i), '\0' };
	const void *at = dlsym(library, name);

	if (!at) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return at;
}

static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return library;
}

/* --- map -------------------------------------------------------------------------------------- */

static void note_pages(const char *path)
{
	void *library = load(path);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die(path);
	for (unsigned i = 0; i < N_FUNCTIONS; i++) {
		const void *at = symbol(library, i);
		Dl_info info;

		/* The linker puts code at its offset in the file. */
		if (dladdr(at, &info) == 0)
			die(path);
		pages[n_pages++] =
		    (struct page){ .fd = fd,
				   .offset = (const uint8_t *)at - (const uint8_t *)info.dli_fbase,
				   .result = function_at(at)(INPUT) };
	}
}

static void map_page(struct place *p, unsigned i, const struct page *page)
{
	uint8_t *at = p->at + i * PAGE;

	if (mmap(at, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, page->fd,
		 page->offset) != at)
		die("mmap");
	p->pages[i] = page;
}

static void protect(const struct place *p, unsigned i, unsigned n, int prot)
{
	if (mprotect(p->at + i * PAGE, n * PAGE, prot) < 0)
		die("mprotect");
}

/* To where it has not been before, and another page to where it was. */
static void move_page(struct place *p, unsigned i, unsigned to)
{
	uint8_t *at = p->at + to * PAGE;

	if (!p->pages[i] || i == to)
		return;
	if (mremap(p->at + i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
		die("mremap");
	p->pages[to] = p->pages[i];
	map_page(p, i, &pages[(p->pages[to] - pages + 1) % (long)n_pages]);
}

/* Locked for writing. */
static void change(struct place *p, uint32_t *seed)
{
	const unsigned i = draw(seed, N_PAGES);
	const struct page *page = &pages[draw(seed, (uint32_t)n_pages)];

	switch (draw(seed, 5)) {
	case 0: /* over what is there */
		map_page(p, i, page);
		break;
	case 1: /* where nothing is, which is known to nobody for a while */
		if (munmap(p->at + i * PAGE, PAGE) < 0)
			die("munmap");
		map_page(p, i, page);
		break;
	case 2: /* all of them taken away, and given back */
		protect(p, 0, N_PAGES, PROT_READ);
		protect(p, 0, N_PAGES, PROT_READ | PROT_EXEC);
		break;
	case 3:
		move_page(p, i, draw(seed, N_PAGES));
		break;
	case 4: /* not executable when it is mapped */
		map_page(p, i, page);
		protect(p, i, 1, PROT_NONE);
		protect(p, i, 1, PROT_READ | PROT_EXEC);
		break;
	}
}

/* Locked for reading: other threads run it, too. */
static void run_page(const struct place *p, unsigned i)
{
	if (p->pages[i] && function_at(p->at + i * PAGE)(INPUT) != p->pages[i]->result) {
		fprintf(stderr, "not the code that was mapped\n");
		exit(3);
	}
}

static void *run_map(void *userdata)
{
	uint32_t seed = (uint32_t)(uintptr_t)userdata;

	for (unsigned i = 0; i < N_ROUNDS; i++) {
		struct place *p = &places[draw(&seed, N_PLACES)];
		unsigned first;

		if (draw(&seed, 3) == 0) {
			pthread_rwlock_wrlock(&p->lock);
			change(p, &seed);
			pthread_rwlock_unlock(&p->lock);
		}
		pthread_rwlock_rdlock(&p->lock);
		first = draw(&seed, N_PAGES);
		for (unsigned k = 0; k < N_PAGES; k++)
			run_page(p, (first + k) % N_PAGES);
		pthread_rwlock_unlock(&p->lock);
	}
	return NULL;
}

static void churn_map(int n, char **paths)
{
	pthread_t threads[N_THREADS];

	for (int i = 0; i < n && i < N_LIBRARIES; i++)
		note_pages(paths[i]);
	for (unsigned i = 0; i < N_PLACES; i++) {
		struct place *p = &places[i];

		pthread_rwlock_init(&p->lock, NULL);
		p->at = mmap(NULL, N_PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p->at == MAP_FAILED)
			die("mmap");
	}
	for (uintptr_t i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, run_map, (void *)(i + 1));
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* --- load ------------------------------------------------------------------------------------- */

static void *run_along(void *userdata)
{
	uint32_t seed = (uint32_t)(uintptr_t)userdata;

	while (!atomic_load(&stop)) {
		for (unsigned i = 0; i < 100; i++)
			(void)draw(&seed, 5);
		usleep(1000);
	}
	return NULL;
}

/* Return: how often one library was where the other one had been. */
static unsigned load_in_turn(char *paths[2], uint32_t *sum)
{
	const void *last = NULL;
	unsigned n_same = 0;

	for (unsigned i = 0; i < N_LOADS; i++) {
		void *library = load(paths[i % 2]);
		const void *at = symbol(library, 0);

		n_same += at == last;
		last = at;
		for (unsigned k = 0; k < N_FUNCTIONS; k++)
			*sum = function_at(symbol(library, k))(*sum);
		if (dlclose(library) != 0)
			die("dlclose");
	}
	return n_same;
}

static void churn_load(char *paths[2])
{
	pthread_t threads[2];
	uint32_t sum = 1;
	unsigned n_same;

	for (uintptr_t i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run_along, (void *)i);
	n_same = load_in_turn(paths, &sum);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%x, %u loads where the other was\n", sum, n_same);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "map") == 0) {
		churn_map(argc - 2, argv + 2);
	} else if (argc == 4 && strcmp(argv[1], "load") == 0) {
		churn_load(argv + 2);
	} else {
		fprintf(stderr, "usage: churn map LIBRARY... | load A B\n");
		return 2;
	}
	return 0;
}
