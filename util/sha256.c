/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "util/effort.h"
#include "util/progress.h"

#define DIGEST_SIZE 32

DEFINE_CLEANUP(EVP_MD_CTX *, EVP_MD_CTX_free);

static void put_hex(const uint8_t digest[static DIGEST_SIZE], char ret_hex[static SHA256_HEX_SIZE])
{
	for (size_t i = 0; i < DIGEST_SIZE; i++)
		(void)snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
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
	_cleanup_(EVP_MD_CTX_freep) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	_cleanup_(freep) uint8_t *buffer = malloc(1 << 20);
	uint8_t digest[DIGEST_SIZE];
	uint64_t size = 0;
	ssize_t n;
	int r;

	if (!ctx || !buffer || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		return -ENOMEM;

	while ((n = pread(fd, buffer, 1 << 20, (off_t)size)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if ((uint64_t)n > effort_size(effort) - size)
			return -EFBIG;
		if (EVP_DigestUpdate(ctx, buffer, (size_t)n) != 1)
			return -EIO;
		size += (uint64_t)n;
		r = effort_check(effort);
		if (r == 0)
			r = progress_add(progress, (uint64_t)n);
		if (r < 0)
			return r;
	}
	if (EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
		return -EIO;

	put_hex(digest, ret_hex);
	*ret_size = size;
	return 0;
}
