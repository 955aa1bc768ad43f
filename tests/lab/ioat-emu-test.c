// SPDX-License-Identifier: GPL-2.0
/*
 * Test of ioat-emu: starts it and does to it what QEMU and ioatdma do, what they never should do,
 * and what a test harness does over the control socket. Prints TAP.
 *
 *   ioat-emu-test PATH-OF-IOAT-EMU
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ioat-emu-test.h"

char sock0[64], sock1[64], ctl[64], log_file[64];
bool failed;

static const char *program;
static char dir[32];

bool check_at(bool cond, const char *text, const char *file, int line)
{
	if (!cond) {
		failed = true;
		printf("# %s:%d: not true: %s\n", basename(file), line, text);
	}
	return cond;
}

double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

pid_t spawn(const char *arg, ...)
{
	const char *argv[16] = { "ioat-emu" };
	unsigned int i = 1;
	va_list ap;
	pid_t pid;

	va_start(ap, arg);
	for (; arg && i < ARRAY_SIZE(argv) - 1; arg = va_arg(ap, const char *))
		argv[i++] = arg;
	va_end(ap);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);	/* nothing stays behind after "Bail out!" */
	if (!freopen(log_file, "a", stderr) || !freopen("/dev/null", "w", stdout))
		_exit(126);
	execv(program, (char **)argv);
	_exit(127);
}

int exit_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

pid_t start(const char *opt, const char *val)
{
	pid_t pid = spawn("-s", sock0, "-s", sock1, "-c", ctl, "-v", opt, val, NULL);
	int i, fd = -1;

	for (i = 0; i < 1000 && fd < 0; i++) {
		usleep(10000);
		fd = connect_to(ctl);
	}
	if (fd < 0) {
		printf("Bail out! no emulator, see its messages in %s\n", log_file);
		exit(1);
	}
	close(fd);
	return pid;
}

void stop(pid_t pid)
{
	kill(pid, SIGTERM);
	check(exit_status(pid) == 0);
	check(access(sock0, F_OK) && access(sock1, F_OK) && access(ctl, F_OK));
}

bool read_line(int fd, char *line, size_t room)
{
	size_t len = 0;

	while (len < room - 1 && read(fd, &line[len], 1) == 1)
		if (line[len++] == '\n') {
			line[len] = '\0';
			return true;
		}
	return false;
}

char reply[32768];

const char *say_to(int fd, const char *line)
{
	reply[0] = '\0';
	if (write(fd, line, strlen(line)) != (ssize_t)strlen(line) ||
	    write(fd, "\n", 1) != 1 || !read_line(fd, reply, sizeof(reply)))
		check(!"the control socket answers");
	return reply;
}

const char *say(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int fd;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fd = connect_to(ctl);
	say_to(fd, line);
	close(fd);
	return reply;
}

bool accepted(const char *line)
{
	return !strcmp(say("%s", line), "{\"ok\":true}\n");
}

bool rejected(const char *line)
{
	return !strncmp(say("%s", line), "{\"ok\":false,\"error\":\"", 21);
}

long long find_number(const char *from, const char *name)
{
	char key[64];
	const char *p;

	snprintf(key, sizeof(key), "\"%s\":", name);
	p = from ? strstr(from, key) : NULL;
	return p ? atoll(p + strlen(key)) : -1;
}

long long total(const char *name)
{
	return find_number(strstr(say("stats"), "\"totals\""), name);
}

const char *find_device(int dev)
{
	char key[32];

	snprintf(key, sizeof(key), "\"device\":%d,", dev);
	return strstr(say("stats"), key);
}

long long dev_stat(int dev, const char *group, const char *name)
{
	char key[32];
	const char *p = find_device(dev);

	snprintf(key, sizeof(key), "\"%s\":{", group);
	return find_number(p ? strstr(p, key) : NULL, name);
}

long long chan_stat(int dev, int ch, const char *name)
{
	char key[32];
	const char *p = find_device(dev);

	snprintf(key, sizeof(key), "\"channel\":%d,", ch);
	return find_number(p ? strstr(p, key) : NULL, name);
}

void fill(__u8 *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		p[i] = (__u8)(seed >> 16);
	}
}

void push_same(struct guest *g, int ch, int count, __u32 size)
{
	int i;

	for (i = 0; i < count; i++)
		chan_push(g, ch, PMEM_IOVA + (__u64)ch * 4 * MIB, DATA_IOVA + (__u64)ch * 4 * MIB,
			  size, i == count - 1 ? LAST : 0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "bad options and set-up errors end with a status", test_options },
	{ "a socket in use is refused, a stale one replaced, SIGTERM removes them", test_sockets },
	{ "ioat-emu ctl", test_ctl_client },
	{ "a driver finds an I/OAT v3.2 device", test_discovery },
	{ "device reset", test_device_reset },
	{ "copies between RAM and pmem, exact counters", test_copy },
	{ "eight channels at once", test_all_channels },
	{ "descriptor count wraps at 65536", test_count_wraps },
	{ "interrupts are held until rearmed or enabled", test_interrupts },
	{ "suspend, resume, reset", test_suspend_and_reset },
	{ "injected error", test_injected_error },
	{ "faults and bad descriptors", test_faults },
	{ "bad chain and completion addresses", test_bad_addresses },
	{ "stall", test_stall },
	{ "delay", test_delay },
	{ "copy across maps, overlapping and partial maps", test_copy_across_maps },
	{ "20000 maps", test_many_maps },
	{ "unmap while copies run", test_unmap_while_running },
	{ "client goes away and comes back", test_client_returns },
	{ "malformed messages", test_bad_messages },
	{ "control: bad input", test_control_errors },
	{ "control: pieces of lines, several clients", test_control_pieces },
	{ "control: a client that never reads", test_control_deaf_client },
	{ "pace", test_pace },
};

static void prepare(void)
{
	snprintf(dir, sizeof(dir), "/tmp/ioat-emu-test.XXXXXX");
	if (!mkdtemp(dir)) {
		printf("Bail out! no temporary directory\n");
		exit(1);
	}
	snprintf(sock0, sizeof(sock0), "%s/dev0", dir);
	snprintf(sock1, sizeof(sock1), "%s/dev1", dir);
	snprintf(ctl, sizeof(ctl), "%s/ctl", dir);
	snprintf(log_file, sizeof(log_file), "%s/log", dir);
	signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
	unsigned int nfailed = 0;
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: ioat-emu-test PATH-OF-IOAT-EMU\n");
		return 2;
	}
	program = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	prepare();
	printf("1..%zu\n", ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		failed = false;
		cases[i].run();
		nfailed += failed;
		printf("%sok %zu - %s\n", failed ? "not " : "", i + 1, cases[i].name);
	}
	if (nfailed) {
		printf("# %u of %zu failed; messages of ioat-emu are in %s\n", nfailed,
		       ARRAY_SIZE(cases), log_file);
		return 1;
	}
	unlink(log_file);
	rmdir(dir);
	return 0;
}
