// SPDX-License-Identifier: GPL-2.0
/* ioat-emu: options, sockets, start and end. See ioat-emu.h for the structure. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ioat-emu.h"

#define EXIT_USAGE	2

struct emu_options opts = {
	.nchans = HW_MAX_CHANS,
	.xfercap = 20,
};

struct emu_dev devs[EMU_MAX_DEVS];

static const char usage_text[] =
	"usage: ioat-emu -s SOCK [-s SOCK ...] [OPTION ...]\n"
	"       ioat-emu ctl SOCK COMMAND [ARGUMENT ...]\n"
	"Serves Intel I/OAT copy engines to virtual machines (QEMU's vfio-user-pci).\n"
	"  -s SOCK    one device, with its vfio-user socket; up to 8\n"
	"  -n CHANS   channels of a device, 1 to 4 (4)\n"
	"  -x LOG2    most bytes per descriptor, as a power of two, 12 to 26 (20)\n"
	"  -B MBPS    speed of a channel in MB/s, 0: as fast as it goes (0)\n"
	"  -L USEC    latency of a descriptor (0)\n"
	"  -C MBPS    speed of all channels of a device together (0)\n"
	"  -S USEC    spin for the last microseconds of a wait, up to 1000 (0)\n"
	"  -c SOCK    control socket; made last, so when it answers the devices are there\n"
	"  -v         log connections, errors and faults; twice: every message\n"
	"ctl sends one command to a control socket and prints the reply; try \"help\".\n";

void emu_log(unsigned int level, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (level > opts.verbose)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "ioat-emu: %s\n", text);
}

_Noreturn static void __printf(2, 0) die(int status, const char *fmt, va_list ap)
{
	fputs("ioat-emu: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	exit(status);
}

void emu_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(EXIT_FAILURE, fmt, ap);
}

_Noreturn static void __printf(1, 2) usage_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	die(EXIT_USAGE, fmt, ap);
}

__u64 emu_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (__u64)ts.tv_sec * 1000000000 + (__u64)ts.tv_nsec;
}

static bool set_path(struct sockaddr_un *addr, const char *path)
{
	addr->sun_family = AF_UNIX;
	return snprintf(addr->sun_path, sizeof(addr->sun_path), "%s", path) <
	       (int)sizeof(addr->sun_path);
}

/* Returns a connected socket, or -1 with errno. */
int emu_connect(const char *path)
{
	struct sockaddr_un addr;
	int fd, err;

	if (!set_path(&addr, path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		err = errno;
		close(fd);
		errno = err;
		fd = -1;
	}
	return fd;
}

/* A socket that nobody answers was left by a process that was killed. */
static void remove_stale(const char *path)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = emu_connect(path);
	if (fd >= 0)
		emu_die("%s: another process serves this socket", path);
	if (errno == ECONNREFUSED)
		unlink(path);
}

int emu_listen(const char *path)
{
	struct sockaddr_un addr;
	int fd;

	if (!set_path(&addr, path))
		emu_die("%s: longer than the %zu characters that a socket's name can have", path,
			sizeof(addr.sun_path) - 1);
	remove_stale(path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 16))
		emu_die("%s: %s", path, strerror(errno));
	return fd;
}

static double parse_double(char opt, const char *arg, double min, double max)
{
	char *end;
	double val = strtod(arg, &end);

	/* Written so that "nan" fails too. */
	if (end == arg || *end || !(val >= min && val <= max))
		usage_error("-%c %s: not a number from %.0f to %.0f", opt, arg, min, max);
	return val;
}

static unsigned int parse_uint(char opt, const char *arg, unsigned int min, unsigned int max)
{
	double val = parse_double(opt, arg, min, max);

	if (val != (unsigned int)val)
		usage_error("-%c %s: not a whole number", opt, arg);
	return (unsigned int)val;
}

static void add_device(const char *path)
{
	if (opts.ndevs == EMU_MAX_DEVS)
		usage_error("more than %u devices", EMU_MAX_DEVS);
	devs[opts.ndevs++].path = path;
}

static void parse_option(int opt, const char *arg)
{
	switch (opt) {
	case 's':
		add_device(arg);
		break;
	case 'n':
		opts.nchans = parse_uint('n', arg, 1, HW_MAX_CHANS);
		break;
	case 'x':
		opts.xfercap = parse_uint('x', arg, 12, 26);
		break;
	case 'B':
		opts.mbps = parse_double('B', arg, 0, 1e6);
		break;
	case 'L':
		opts.latency_us = parse_double('L', arg, 0, 1e8);
		break;
	case 'C':
		opts.cap_mbps = parse_double('C', arg, 0, 1e6);
		break;
	case 'S':
		opts.spin_us = parse_uint('S', arg, 0, 1000);
		break;
	case 'c':
		opts.control = arg;
		break;
	case 'v':
		opts.verbose++;
		break;
	case 'h':
		fputs(usage_text, stdout);
		exit(EXIT_SUCCESS);
	default:
		fputs(usage_text, stderr);
		exit(EXIT_USAGE);
	}
}

static void parse_options(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, "s:n:x:B:L:C:S:c:vh")) != -1)
		parse_option(opt, optarg);
	if (optind < argc)
		usage_error("%s: not an option", argv[optind]);
	if (!opts.ndevs)
		usage_error("no device: -s SOCK is needed (-h shows the options)");
}

/* Signals arrive as input of the poll loop, so that the end is an ordinary return from it. */
static int take_signals(void)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		emu_die("signalfd: %s", strerror(errno));
	return fd;
}

static void remove_sockets(void)
{
	unsigned int i;

	for (i = 0; i < opts.ndevs; i++)
		if (devs[i].listen_fd > 0)
			unlink(devs[i].path);
}

static void start_devices(void)
{
	unsigned int i, j;

	for (i = 0; i < opts.ndevs; i++)
		dev_init(&devs[i], i);
	for (i = 0; i < opts.ndevs; i++)
		devs[i].listen_fd = emu_listen(devs[i].path);
	for (i = 0; i < opts.ndevs; i++) {
		for (j = 0; j < opts.nchans; j++)
			chan_start(&devs[i].chans[j]);
		vfio_start(&devs[i]);
	}
}

int main(int argc, char **argv)
{
	int signal_fd, control_fd = -1, err;

	setvbuf(stderr, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "ctl")) {
		if (argc < 4)
			usage_error("usage: ioat-emu ctl SOCK COMMAND [ARGUMENT ...]");
		return control_client(argv[2], argc - 3, argv + 3);
	}
	parse_options(argc, argv);
	signal_fd = take_signals();
	atexit(remove_sockets);
	start_devices();
	if (opts.control)
		control_fd = emu_listen(opts.control);
	err = control_serve(control_fd, signal_fd);
	if (control_fd >= 0)
		unlink(opts.control);
	if (err)
		emu_die("poll: %s", strerror(err));
	return EXIT_SUCCESS;
}
