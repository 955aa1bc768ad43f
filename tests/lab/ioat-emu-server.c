// SPDX-License-Identifier: GPL-2.0
/*
 * The control socket: a poll loop for its clients, and the client that "ioat-emu ctl" is.
 *
 * One client is QEMU, on behalf of the guest, and stays for the whole run. What it passes on
 * comes in pieces of any size, and nobody may read the other end: a client whose replies are stuck
 * is not read from until they have gone, and never holds up the others.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ioat-emu.h"

#define MAX_CLIENTS	16
#define MAX_LINE	256

struct client {
	int fd;
	char in[MAX_LINE];
	size_t in_len;
	bool skipping;		/* the rest of a line that was too long */
	char *out;
	size_t out_len;
	size_t out_done;
};

static struct client clients[MAX_CLIENTS];
static unsigned int nclients;

static void client_add(int listen_fd)
{
	struct client *cl = &clients[nclients];
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	memset(cl, 0, sizeof(*cl));
	cl->fd = fd;
	nclients++;
}

static void client_remove(unsigned int i)
{
	close(clients[i].fd);
	free(clients[i].out);
	clients[i] = clients[--nclients];
}

static bool client_has_output(const struct client *cl)
{
	return cl->out;
}

/* False when the client is gone. */
static bool client_flush(struct client *cl)
{
	while (cl->out_done < cl->out_len) {
		ssize_t n = send(cl->fd, cl->out + cl->out_done, cl->out_len - cl->out_done,
				 MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		cl->out_done += (size_t)n;
	}
	free(cl->out);
	cl->out = NULL;
	return true;
}

static bool client_reply(struct client *cl, char *line, const char *error)
{
	FILE *out = open_memstream(&cl->out, &cl->out_len);

	if (!out)
		return false;
	cl->out_done = 0;
	if (error)
		fprintf(out, "{\"ok\":false,\"error\":\"%s\"}\n", error);
	else
		control_command(line, out);
	if (fclose(out))
		return false;
	return client_flush(cl);
}

/* Takes one line from the input buffer and answers it. False when there is none, or no client. */
static bool client_line(struct client *cl, bool *gone)
{
	char line[MAX_LINE];
	char *end = memchr(cl->in, '\n', cl->in_len);
	size_t len = end ? (size_t)(end - cl->in) : cl->in_len;
	bool reply = !cl->skipping;
	const char *error = NULL;

	if (!end && cl->in_len < sizeof(cl->in))
		return false;
	if (!end) {
		cl->skipping = true;
		error = "line too long";
	} else {
		cl->skipping = false;
		memcpy(line, cl->in, len);
		line[len++] = '\0';
	}
	cl->in_len -= len;
	memmove(cl->in, cl->in + len, cl->in_len);
	*gone = reply && !client_reply(cl, line, error);
	return !*gone;
}

static bool client_read(struct client *cl)
{
	ssize_t n = read(cl->fd, cl->in + cl->in_len, sizeof(cl->in) - cl->in_len);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	cl->in_len += (size_t)n;
	return n > 0;
}

static bool client_event(struct client *cl)
{
	bool gone = false;

	if (client_has_output(cl) ? !client_flush(cl) : !client_read(cl))
		return false;
	while (!client_has_output(cl) && client_line(cl, &gone))
		;
	return !gone;
}

static void poll_fill(struct pollfd *pfd, int listen_fd, int signal_fd)
{
	unsigned int i;

	pfd[0] = (struct pollfd) { .fd = signal_fd, .events = POLLIN };
	pfd[1] = (struct pollfd) {
		.fd = nclients < MAX_CLIENTS ? listen_fd : -1,
		.events = POLLIN,
	};
	for (i = 0; i < nclients; i++)
		pfd[i + 2] = (struct pollfd) {
			.fd = clients[i].fd,
			.events = client_has_output(&clients[i]) ? POLLOUT : POLLIN,
		};
}

/* Returns when a signal has come. listen_fd may be -1. */
int control_serve(int listen_fd, int signal_fd)
{
	struct pollfd pfd[MAX_CLIENTS + 2];
	unsigned int i;

	for (;;) {
		poll_fill(pfd, listen_fd, signal_fd);
		if (poll(pfd, nclients + 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return errno;
		}
		if (pfd[0].revents)
			return 0;
		/* Downwards, as removal moves the last client into the gap. */
		for (i = nclients; i--;)
			if (pfd[i + 2].revents && !client_event(&clients[i]))
				client_remove(i);
		if (pfd[1].revents)
			client_add(listen_fd);
	}
}

static bool send_words(int fd, int nwords, char **words)
{
	char line[MAX_LINE];
	size_t len = 0;
	int i;

	for (i = 0; i < nwords; i++) {
		int n = snprintf(line + len, sizeof(line) - len, "%s%c", words[i],
				 i == nwords - 1 ? '\n' : ' ');

		len += (size_t)n;
		if (len >= sizeof(line))
			emu_die("the command is too long");
	}
	return send(fd, line, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Also waits a second for the socket: the emulator may have been started a moment ago. */
static int connect_patiently(const char *path)
{
	int fd, tries = 20;

	for (;;) {
		fd = emu_connect(path);
		if (fd >= 0 || !--tries || (errno != ENOENT && errno != ECONNREFUSED))
			return fd;
		usleep(50000);
	}
}

/* Sends one command and prints the reply. Returns the exit status. */
int control_client(const char *path, int nwords, char **words)
{
	static const char good[] = "{\"ok\":true";
	char *line = NULL;
	size_t room = 0;
	FILE *in;
	int fd, status;

	fd = connect_patiently(path);
	if (fd < 0)
		emu_die("%s: %s", path, strerror(errno));
	if (!send_words(fd, nwords, words))
		emu_die("%s: %s", path, strerror(errno));
	in = fdopen(fd, "r");
	if (!in || getline(&line, &room, in) < 0)
		emu_die("%s: no reply", path);
	fputs(line, stdout);
	status = strncmp(line, good, sizeof(good) - 1) ? EXIT_FAILURE : EXIT_SUCCESS;
	free(line);
	fclose(in);
	return status;
}
