/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bytes of a client at the control socket of a whole recorder that serves it in another thread. An
 * input whose first byte is 1 follows a good authentication; any other is all that the client says.
 * Then another client, a good one, must be answered.
 */

#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>

#include "daemon/config/config.h"
#include "daemon/manager.h"
#include "ptd/control.h"
#include "util/dirs.h"

#define ANSWER_MS 5   /* how long to wait for what may be no answer */
#define CHECK     256 /* inputs from one good client to the next */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/fuzz-control-XXXXXX";
static char socket_path[80];
static pthread_t server;

static void remove_dir(void)
{
	(void)pthread_kill(server, SIGTERM);
	(void)pthread_join(server, NULL);
	if (dirs_remove(AT_FDCWD, dir) < 0)
		abort();
}

static void *serve(void *userdata)
{
	struct manager *manager = userdata;

	if (manager_run(manager) < 0)
		abort();
	return manager_free(manager);
}

static int load_config(struct config *ret_config, void *userdata)
{
	*ret_config = *(const struct config *)userdata;
	return 0;
}

static void start(void)
{
	static struct config config;
	char run[64], state[64];
	struct manager *manager;
	sigset_t signals;

	/* The manager takes SIGTERM from a descriptor: no thread may take it otherwise. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	(void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Now, so that at exit it is taken down after remove_dir(), not under a snapshot's feet. */
	(void)OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, NULL);

	if (!mkdtemp(dir))
		abort();
	(void)snprintf(run, sizeof(run), "%s/run", dir);
	(void)snprintf(state, sizeof(state), "%s/state", dir);
	(void)snprintf(socket_path, sizeof(socket_path), "%s/control", run);
	config_init(&config);
	config.source = CONFIG_SOURCE_EMU;
	config.n_cpus = 1;
	config.aux_size = config.switch_size = config.task_size = 4096;
	config.max_use = (struct config_limit){ .bytes = 1 << 20 };
	if (manager_new(&(struct manager_options){ .config = &config,
						   .runtime_dir = run,
						   .state_dir = state,
						   .load_config = load_config,
						   .userdata = &config },
			&manager) < 0 ||
	    pthread_create(&server, NULL, serve, manager) != 0 || atexit(remove_dir) != 0)
		abort();
}

static int connect_to_it(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, socket_path, strlen(socket_path));
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		abort();
	return fd;
}

/* Another client is answered, whatever the others do. */
static void ask_well(void)
{
	const int fd = connect_to_it();
	sd_bus_message *reply = NULL;
	sd_bus *bus = NULL;

	if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 || sd_bus_start(bus) < 0 ||
	    sd_bus_call_method(bus, NULL, PTD_CONTROL_OBJECT, PTD_CONTROL_INTERFACE, "GetStatus",
			       NULL, &reply, "") < 0)
		abort();
	sd_bus_message_unref(reply);
	sd_bus_close_unref(bus);
}

static void say(int fd, const void *bytes, size_t size)
{
	while (size > 0) {
		const ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n <= 0)
			return; /* it has hung up, or does not listen */
		bytes = (const char *)bytes + n;
		size -= (size_t)n;
	}
}

/* Read answers until there are none for a while, or the end. */
static void listen_to(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[4096];

	while (poll(&p, 1, ANSWER_MS) > 0 && recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char begin[] = "AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
	static unsigned n;
	int fd;

	if (n++ == 0)
		start();
	fd = connect_to_it();
	if (size > 0 && data[0] == 1) {
		say(fd, "", 1);
		say(fd, begin, strlen(begin));
		data++;
		size--;
	}
	say(fd, data, size);
	(void)shutdown(fd, SHUT_WR);
	listen_to(fd);
	(void)close(fd);
	if (n % CHECK == 1)
		ask_well();
	return 0;
}
