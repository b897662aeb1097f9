/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "util/effort.h"
#include "util/progress.h"

#define DIGEST_SIZE 32

static EVP_MD_CTX *context_of(struct sha256 *sha256)
{
	return (EVP_MD_CTX *)sha256;
}

static void put_hex(const uint8_t digest[static DIGEST_SIZE], char ret_hex[static SHA256_HEX_SIZE])
{
	for (size_t i = 0; i < DIGEST_SIZE; i++)
		(void)snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

int sha256_new(struct sha256 **ret_sha256)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();

	if (!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
		EVP_MD_CTX_free(context);
		return -ENOMEM;
	}
	*ret_sha256 = (struct sha256 *)context;
	return 0;
}

struct sha256 *sha256_free(struct sha256 *sha256)
{
	EVP_MD_CTX_free(context_of(sha256));
	return NULL;
}

int sha256_add(struct sha256 *sha256, const void *bytes, size_t size)
{
	return EVP_DigestUpdate(context_of(sha256), bytes, size) == 1 ? 0 : -EIO;
}

int sha256_finish(struct sha256 *sha256, char ret_hex[static SHA256_HEX_SIZE])
{
	uint8_t digest[DIGEST_SIZE];

	if (EVP_DigestFinal_ex(context_of(sha256), digest, NULL) != 1)
		return -EIO;
	put_hex(digest, ret_hex);
	return 0;
}

int sha256_bytes(const void *bytes, size_t size, char ret_hex[static SHA256_HEX_SIZE])
{
	uint8_t digest[DIGEST_SIZE];

	if (EVP_Digest(bytes, size, digest, NULL, EVP_sha256(), NULL) != 1)
		return -EIO;
	put_hex(digest, ret_hex);
	return 0;
}

int sha256_fd(int fd, const struct effort *effort, struct progress *progress,
	      char ret_hex[static SHA256_HEX_SIZE], uint64_t *ret_size)
{
	_cleanup_(sha256_freep) struct sha256 *sha256 = NULL;
	_cleanup_(freep) uint8_t *buffer = malloc(1 << 20);
	uint64_t size = 0;
	ssize_t n;
	int r;

	r = buffer ? sha256_new(&sha256) : -ENOMEM;
	if (r < 0)
		return r;
	while ((n = pread(fd, buffer, 1 << 20, (off_t)size)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((uint64_t)n > effort_size(effort) - size)
			return -EFBIG;
		r = sha256_add(sha256, buffer, (size_t)n);
		size += (uint64_t)n;
		if (r == 0)
			r = effort_check(effort);
		if (r == 0)
			r = progress_add(progress, (uint64_t)n);
		if (r < 0)
			return r;
	}
	r = sha256_finish(sha256, ret_hex);
	if (r == 0)
		*ret_size = size;
	return r;
}

bool sha256_fd_is(int fd, const char *hex)
{
	char own[SHA256_HEX_SIZE];
	uint64_t size;

	return sha256_fd(fd, NULL, NULL, own, &size) == 0 && strcmp(own, hex) == 0;
}
