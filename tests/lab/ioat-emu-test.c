// SPDX-License-Identifier: GPL-2.0
/*
 * Test of ioat-emu: starts it and does to it what QEMU and ioatdma do, what they never should do,
 * and what a test harness does over the control socket. Prints TAP.
 *
 *   ioat-emu-test PATH-OF-IOAT-EMU
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ioat-emu-client.h"

#define MB	1000000ULL
#define KIB	1024U
#define MIB	(1024U * 1024)

#define LAST	(DESC_INT | DESC_COMPLETION)

static const char *program;
static char dir[32], sock0[64], sock1[64], ctl[64], log_file[64];
static bool failed;

/* One line of a case; the case goes on, as the later lines often explain the first. */
#define check(cond)	check_at(cond, #cond, __LINE__)

static bool check_at(bool cond, const char *text, int line)
{
	if (!cond) {
		failed = true;
		printf("# line %d: not true: %s\n", line, text);
	}
	return cond;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- the emulator as a child process ---- */

/* Arguments after the name, then NULL. A NULL among them ends the list early. */
static pid_t spawn(const char *arg, ...)
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

static int exit_status(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

#define status_of(...)	exit_status(spawn(__VA_ARGS__, NULL))

static int connect_to(const char *path)
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

/* Two devices, a control socket, and one option that may be NULL. */
static pid_t start(const char *opt, const char *val)
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

static void stop(pid_t pid)
{
	kill(pid, SIGTERM);
	check(exit_status(pid) == 0);
	check(access(sock0, F_OK) && access(sock1, F_OK) && access(ctl, F_OK));
}

/* ---- the control socket ---- */

static bool read_line(int fd, char *line, size_t room)
{
	size_t len = 0;

	while (len < room - 1 && read(fd, &line[len], 1) == 1)
		if (line[len++] == '\n') {
			line[len] = '\0';
			return true;
		}
	return false;
}

static char reply[32768];

static const char *say_to(int fd, const char *line)
{
	reply[0] = '\0';
	if (write(fd, line, strlen(line)) != (ssize_t)strlen(line) ||
	    write(fd, "\n", 1) != 1 || !read_line(fd, reply, sizeof(reply)))
		check(!"the control socket answers");
	return reply;
}

static const char *say(const char *fmt, ...)
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

static bool accepted(const char *line)
{
	return !strcmp(say("%s", line), "{\"ok\":true}\n");
}

static bool rejected(const char *line)
{
	return !strncmp(say("%s", line), "{\"ok\":false,\"error\":\"", 21);
}

static long long find_number(const char *from, const char *name)
{
	char key[64];
	const char *p;

	snprintf(key, sizeof(key), "\"%s\":", name);
	p = from ? strstr(from, key) : NULL;
	return p ? atoll(p + strlen(key)) : -1;
}

static long long total(const char *name)
{
	return find_number(strstr(say("stats"), "\"totals\""), name);
}

static const char *find_device(int dev)
{
	char key[32];

	snprintf(key, sizeof(key), "\"device\":%d,", dev);
	return strstr(say("stats"), key);
}

static long long dev_stat(int dev, const char *group, const char *name)
{
	char key[32];
	const char *p = find_device(dev);

	snprintf(key, sizeof(key), "\"%s\":{", group);
	return find_number(p ? strstr(p, key) : NULL, name);
}

static long long chan_stat(int dev, int ch, const char *name)
{
	char key[32];
	const char *p = find_device(dev);

	snprintf(key, sizeof(key), "\"channel\":%d,", ch);
	return find_number(p ? strstr(p, key) : NULL, name);
}

/* ---- data ---- */

static void fill(__u8 *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1103515245 + 12345;
		p[i] = (__u8)(seed >> 16);
	}
}

/* A ring full of copies of size bytes each, all from the same place to the same place. */
static void push_same(struct guest *g, int ch, int count, __u32 size)
{
	int i;

	for (i = 0; i < count; i++)
		chan_push(g, ch, PMEM_IOVA + (__u64)ch * 4 * MIB, DATA_IOVA + (__u64)ch * 4 * MIB,
			  size, i == count - 1 ? LAST : 0);
}

/* ---- cases: start, options, files ---- */

static void test_options(void)
{
	char long_path[200];

	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	check(status_of("-v") == 2);
	check(status_of("-s", sock0, "-n", "5") == 2);
	check(status_of("-s", sock0, "-x", "11") == 2);
	check(status_of("-s", sock0, "-B", "nan") == 2);
	check(status_of("-s", sock0, "-L", "10us") == 2);
	check(status_of("-s", sock0, "-S", "1.5") == 2);
	check(status_of("-s", sock0, "extra") == 2);
	check(status_of("-s", sock0, "-Z") == 2);
	check(status_of("-h") == 0);
	check(status_of("-s", "/nonexistent/sock") == 1);
	check(status_of("-s", long_path) == 1);
	check(status_of("-s", log_file) == 1 && !access(log_file, F_OK));
	check(status_of("-s", sock0, "-s", "/nonexistent/sock") == 1 && access(sock0, F_OK));
}

static void test_sockets(void)
{
	pid_t pid = start(NULL, NULL);
	struct stat st;

	check(status_of("-s", sock0) == 1);
	check(!lstat(sock0, &st) && S_ISSOCK(st.st_mode));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	check(!access(sock0, F_OK));
	pid = start(NULL, NULL);	/* over the sockets that the killed one left */
	check(total("bytes") == 0);
	stop(pid);
}

static void test_ctl_client(void)
{
	pid_t pid = start(NULL, NULL);

	check(status_of("ctl", ctl, "stats") == 0);
	check(status_of("ctl", ctl, "rate", "0", "0", "1000", "5") == 0);
	check(status_of("ctl", ctl, "nonsense") == 1);
	check(status_of("ctl", ctl) == 2);
	stop(pid);
	check(status_of("ctl", ctl, "stats") == 1);
}

/* ---- cases: what a driver finds ---- */

static void test_discovery(void)
{
	struct vu_region_info region = { .argsz = sizeof(region), .index = VU_REGION_BAR0 };
	struct vu_irq_info irq = { .argsz = sizeof(irq), .index = VU_IRQ_MSIX };
	struct vu_device_info info = { .argsz = sizeof(info) };
	const __u32 cfg = VU_REGION_CONFIG, bar = VU_REGION_BAR0;
	pid_t pid = start("-n", "3");
	struct guest g;

	guest_connect(&g, sock0);
	check(!guest_ask(&g, VU_DEVICE_INFO, &info, sizeof(info), &info, sizeof(info)));
	check(info.regions == 9 && info.irqs == 3);
	check(info.flags == (VU_DEVICE_RESET | VU_DEVICE_PCI));
	check(!guest_ask(&g, VU_REGION_INFO, &region, sizeof(region), &region, sizeof(region)));
	check(region.size == HW_BAR_SIZE && region.flags == VU_REGION_RW);
	check(!guest_ask(&g, VU_IRQ_INFO, &irq, sizeof(irq), &irq, sizeof(irq)));
	check(irq.count == 3 && irq.flags == VU_IRQ_EVENTFD);

	check(guest_read(&g, cfg, 0, 4) == 0x20218086);
	guest_write(&g, cfg, 0x10, 4, 0xffffffff);
	check(guest_read(&g, cfg, 0x10, 4) == 0xffffc004);
	guest_write(&g, cfg, 0x30, 4, 0xffffffff);
	check(guest_read(&g, cfg, 0x30, 4) == 0);	/* no ROM */
	check(guest_read(&g, cfg, CFG_PCIE, 2) == (0x10 | CFG_MSIX << 8));
	check(guest_read(&g, cfg, CFG_MSIX, 4) == (0x11 | 2 << 16));
	guest_write(&g, cfg, CFG_CHANERR_INT, 4, 0xffffffff);
	check(guest_read(&g, cfg, CFG_CHANERR_INT, 4) == 0);

	check(guest_read(&g, bar, REG_CHANCNT, 1) == 3);
	check(guest_read(&g, bar, REG_XFERCAP, 1) == 20);
	check(guest_read(&g, bar, REG_VERSION, 1) == HW_VERSION);
	check(guest_read(&g, bar, REG_DMACAP, 4) == 0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(chan_read(&g, 3, CHAN_STATUS, 8) == 0);	/* there is no fourth channel */
	guest_close(&g);
	stop(pid);
}

static void test_device_reset(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 1));
	guest_write(&g, VU_REGION_CONFIG, 4, 2, 0x0006);
	check(guest_read(&g, VU_REGION_CONFIG, 4, 2) == 0x0006);
	check(accepted("stall 0 1 1"));
	check(!guest_call(&g, VU_RESET, NULL, 0, NULL, 0));
	check(guest_read(&g, VU_REGION_CONFIG, 4, 2) == 0);
	check(guest_read(&g, VU_REGION_BAR0, REG_INTRCTRL, 1) == 0);
	check(chan_state(&g, 1) == STATE_HALTED);
	guest_write(&g, VU_REGION_BAR0, REG_INTRCTRL, 1, INTRCTRL_MASTER_EN);
	check(chan_begin(&g, 1));	/* maps and vectors are still there, the stall is not */
	guest_close(&g);
	stop(pid);
}

/* ---- cases: copies ---- */

static void copy_random(struct guest *g, int ch, int count, __u64 *bytes)
{
	const __u64 half = 8 * MIB;
	__u64 src = DATA_IOVA, dst = PMEM_IOVA;
	int i;

	fill(g->ram + DATA_IOVA, half, 1);
	memset(g->pmem, 0xee, half);
	for (i = 0; i < count; i++) {
		__u32 size = (__u32)(random() % 30000 + 1);

		chan_push(g, ch, dst, src, size, i == count - 1 ? LAST : 0);
		src += size;
		dst += size;
		*bytes += size;
	}
	chan_doorbell(g, ch);
}

static void test_copy(void)
{
	pid_t pid = start(NULL, NULL);
	__u64 bytes = 0;
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	check(accepted("reset-stats"));
	copy_random(&g, 0, 250, &bytes);
	check(chan_wait_done(&g, 0));
	check(chan_irqs(&g, 0, true) == 0);	/* the null descriptor's was not rearmed */
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);
	check(chan_irqs(&g, 0, true) == 1);
	check(!memcmp(g.pmem, g.ram + DATA_IOVA, bytes));
	check(g.pmem[bytes] == 0xee);
	check(chan_stat(0, 0, "bytes") == (long long)bytes);
	check(total("bytes") == (long long)bytes);
	check(total("descriptors") == 250);
	check(total("null_descriptors") == 0);
	check(total("interrupts") == 1 && total("held_interrupts") == 1);
	check(total("in_progress") == 0);

	fill(g.pmem, 5000, 2);		/* and back, from pmem */
	chan_push(&g, 0, DATA_IOVA + 7, PMEM_IOVA, 5000, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(!memcmp(g.ram + DATA_IOVA + 7, g.pmem, 5000));
	guest_close(&g);
	stop(pid);
}

static void test_all_channels(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g[2];
	int d, ch, round;

	guest_open(&g[0], sock0);
	guest_open(&g[1], sock1);
	for (d = 0; d < 2; d++)
		for (ch = 0; ch < 4; ch++)
			check(chan_begin(&g[d], ch));
	check(accepted("reset-stats"));
	for (round = 0; round < 5; round++) {
		for (d = 0; d < 2; d++)
			for (ch = 0; ch < 4; ch++) {
				push_same(&g[d], ch, 1000, 4 * KIB);
				chan_doorbell(&g[d], ch);
			}
		for (d = 0; d < 2; d++)
			for (ch = 0; ch < 4; ch++)
				check(chan_wait_done(&g[d], ch));
	}
	check(total("descriptors") == 2 * 4 * 5 * 1000);
	check(total("bytes") == 2LL * 4 * 5 * 1000 * 4 * KIB);
	check(chan_stat(1, 3, "bytes") == 5LL * 1000 * 4 * KIB);
	guest_close(&g[0]);
	guest_close(&g[1]);
	stop(pid);
}

/* The count register has 16 bits and wraps round; so does the ring, elsewhere. */
static void test_count_wraps(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	check(chan_begin(&g, 2));
	check(accepted("reset-stats"));
	for (i = 0; i < 140 && !failed; i++) {
		push_same(&g, 2, 500, 64);
		chan_doorbell(&g, 2);
		check(chan_wait_done(&g, 2));
	}
	check(total("descriptors") == 70000);
	check(total("bytes") == 70000LL * 64);
	guest_close(&g);
	stop(pid);
}

static void test_interrupts(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);
	for (i = 0; i < 3; i++) {
		chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
		chan_doorbell(&g, 0);
		check(chan_wait_done(&g, 0));
	}
	check(chan_irqs(&g, 0, true) == 1);
	check(guest_read(&g, VU_REGION_BAR0, REG_ATTNSTATUS, 4) == 1);
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);	/* two more became one */
	check(chan_irqs(&g, 0, true) == 1);
	check(guest_read(&g, VU_REGION_BAR0, REG_ATTNSTATUS, 4) == 0);

	guest_write(&g, VU_REGION_BAR0, REG_INTRCTRL, 1, 0);
	chan_write(&g, 0, CHAN_CTRL, 2, CTRL_REARM);
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(chan_irqs(&g, 0, false) == 0);
	guest_write(&g, VU_REGION_BAR0, REG_INTRCTRL, 1, INTRCTRL_MASTER_EN);
	check(chan_irqs(&g, 0, true) == 1);
	guest_close(&g);
	stop(pid);
}

static void test_suspend_and_reset(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	chan_write(&g, 0, CHAN_CMD, 1, CMD_SUSPEND);
	check(chan_state(&g, 0) == STATE_SUSPENDED);
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_doorbell(&g, 0);
	usleep(20000);
	check(chan_state(&g, 0) == STATE_SUSPENDED);
	chan_write(&g, 0, CHAN_CMD, 1, CMD_RESUME);
	check(chan_wait_done(&g, 0));

	/* a slow copy: suspends when it is over, a reset does not wait for it */
	check(accepted("rate 0 0 0 100000"));
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 100, LAST);
	chan_doorbell(&g, 0);
	usleep(20000);
	chan_write(&g, 0, CHAN_CMD, 1, CMD_SUSPEND);
	check(chan_wait_state(&g, 0, STATE_SUSPENDED));
	check(chan_stat(0, 0, "in_progress") == 1);
	chan_reset(&g, 0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(accepted("rate 0 0 0 0"));
	check(chan_begin(&g, 0));
	guest_close(&g);
	stop(pid);
}

/* ---- cases: errors ---- */

static void check_failed(struct guest *g, int ch, __u32 err, __u64 last)
{
	check(chan_wait_state(g, ch, STATE_HALTED));
	check(chan_read(g, ch, CHAN_ERR, 4) == err);
	check(chan_done_word(g, ch) == (last | STATE_HALTED));
}

static void test_injected_error(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	__u64 last = 0;
	int i;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	check(accepted("reset-stats"));
	check(accepted("err 0 0 100 3"));
	memset(g.pmem, 0xee, 6 * 4096);
	fill(g.ram + DATA_IOVA, 6 * 4096, 3);
	for (i = 0; i < 6; i++) {
		__u64 at = chan_push(&g, 0, PMEM_IOVA + i * 4096, DATA_IOVA + i * 4096, 4096, LAST);

		if (i == 2)
			last = at;
	}
	chan_doorbell(&g, 0);
	check_failed(&g, 0, ERR_READ_DATA, last);
	check(!memcmp(g.pmem, g.ram + DATA_IOVA, 3 * 4096));
	check(g.pmem[3 * 4096] == 0xee);
	check(total("bytes") == 3 * 4096 && total("descriptors") == 3);
	check(total("errors") == 1);
	chan_write(&g, 0, CHAN_COUNT, 2, 7);	/* a failed channel does not go on by itself */
	check(chan_state(&g, 0) == STATE_HALTED);

	check(chan_begin(&g, 0));
	push_same(&g, 0, 10, 4096);		/* and the injected error is used up */
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(total("bytes") == 13 * 4096);
	guest_close(&g);
	stop(pid);
}

static void copy_fails(struct guest *g, __u64 dst, __u64 src, __u32 size, __u32 ctl, __u32 err)
{
	__u64 last = RING_IOVA(0);

	check(chan_begin(g, 0));
	chan_push(g, 0, dst, src, size, ctl);
	chan_doorbell(g, 0);
	check_failed(g, 0, err, last);
}

static void test_faults(void)
{
	const __u64 hole = 2ULL << 30, ro = 8ULL << 30, rom = 9ULL << 30;
	pid_t pid = start("-x", "16");
	struct guest g;

	guest_open(&g, sock0);
	check(!guest_map(&g, ro, MIB, VU_MAP_READ, g.pmem_fd, 0));
	check(!guest_map(&g, rom, MIB, VU_MAP_READ, -1, 0));
	check(accepted("reset-stats"));
	copy_fails(&g, PMEM_IOVA, hole, 4096, LAST, ERR_READ_DATA);
	copy_fails(&g, PMEM_IOVA, rom, 4096, LAST, ERR_READ_DATA);
	copy_fails(&g, hole, DATA_IOVA, 4096, LAST, ERR_WRITE_DATA);
	copy_fails(&g, ro, DATA_IOVA, 4096, LAST, ERR_WRITE_DATA);
	copy_fails(&g, PMEM_IOVA, RAM_SIZE - 100, 4096, LAST, ERR_READ_DATA);
	check(dev_stat(0, "faults", "read") == 3 && dev_stat(0, "faults", "write") == 2);
	check(total("errors") == 5);
	check(total("bytes") == 0);

	copy_fails(&g, PMEM_IOVA, DATA_IOVA, 0, LAST, ERR_LENGTH);
	copy_fails(&g, PMEM_IOVA, DATA_IOVA, 65537, LAST, ERR_LENGTH);
	copy_fails(&g, PMEM_IOVA, DATA_IOVA, 4096, LAST | 0x87U << 24, ERR_CONTROL);
	check(chan_begin(&g, 0));
	chan_push(&g, 0, PMEM_IOVA, DATA_IOVA, 65536, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	check(total("bytes") == 65536);
	guest_close(&g);
	stop(pid);
}

static void chain_fails(struct guest *g, __u64 chain, __u64 completion, __u32 ctl, __u32 err)
{
	chan_reset(g, 0);
	g->head[0] = 0;
	chan_push(g, 0, 0, 0, 1, ctl);
	chan_write(g, 0, CHAN_COMPLETION, 8, completion);
	chan_write(g, 0, CHAN_CHAIN, 8, chain);
	chan_write(g, 0, CHAN_COUNT, 2, 1);
	check(chan_wait_state(g, 0, STATE_HALTED));
	check(chan_read(g, 0, CHAN_ERR, 4) == err);
}

static void test_bad_addresses(void)
{
	const __u64 hole = 2ULL << 30;
	const __u32 null = DESC_NULL | LAST;
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	chain_fails(&g, hole, DONE_IOVA(0), null, ERR_NEXT_ADDR);
	chain_fails(&g, RING_IOVA(0) + 8, DONE_IOVA(0), null, ERR_NEXT_ALIGN);
	chain_fails(&g, RING_IOVA(0), hole, null, ERR_COMPLETION_ADDR);
	chain_fails(&g, RING_IOVA(0), DONE_IOVA(0) + 4, null, ERR_COMPLETION_ADDR);
	check(chan_begin(&g, 0));
	guest_close(&g);
	stop(pid);
}

static void test_stall(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0) && chan_begin(&g, 1));
	check(accepted("stall 0 0 1"));
	push_same(&g, 0, 5, 4096);
	chan_doorbell(&g, 0);
	push_same(&g, 1, 5, 4096);
	chan_doorbell(&g, 1);
	check(chan_wait_done(&g, 1));		/* the other channel is not affected */
	usleep(50000);
	check(chan_state(&g, 0) == STATE_ACTIVE);
	check(chan_stat(0, 0, "in_progress") == 5);
	check(accepted("stall * * 0"));
	check(chan_wait_done(&g, 0));

	check(accepted("stall 0 0 1"));		/* a reset gets through, what was hanging is lost */
	check(accepted("reset-stats"));
	push_same(&g, 0, 5, 4096);
	chan_doorbell(&g, 0);
	chan_reset(&g, 0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(accepted("stall 0 0 0"));
	check(chan_begin(&g, 0));
	check(total("bytes") == 0);
	guest_close(&g);
	stop(pid);
}

static void test_delay(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	double t;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0));
	check(accepted("delay 0 0 100000"));
	push_same(&g, 0, 2, 4096);
	t = now_s();
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	t = now_s() - t;
	check(t > 0.2 && t < 2);

	check(accepted("delay 0 0 60000000"));
	check(accepted("reset-stats"));
	push_same(&g, 0, 2, 4096);
	chan_doorbell(&g, 0);
	usleep(20000);
	t = now_s();
	chan_reset(&g, 0);			/* ioatdma would give up after 200 ms */
	check(now_s() - t < 0.15);
	check(accepted("delay 0 0 0"));
	check(chan_begin(&g, 0));
	check(total("bytes") == 0);
	guest_close(&g);
	stop(pid);
}

/* ---- cases: maps ---- */

static void test_copy_across_maps(void)
{
	const __u64 base = 16ULL << 30;
	const __u32 rw = VU_MAP_READ | VU_MAP_WRITE;
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	/* 16 pages, mapped one by one and last page first */
	for (i = 15; i >= 0; i--)
		check(!guest_map(&g, base + i * 4096, 4096, rw, g.pmem_fd, (__u64)(15 - i) * 4096));
	check(guest_map(&g, base + 4096, 4096, rw, g.pmem_fd, 0) == EEXIST);
	check(guest_map(&g, base - 4096, 8192, rw, g.pmem_fd, 0) == EEXIST);
	check(guest_map(&g, base + (1 << 20), 0, rw, g.pmem_fd, 0) == EINVAL);
	check(guest_map(&g, ~0ULL - 4095, 8192, rw, g.pmem_fd, 0) == EINVAL);
	check(dev_stat(0, "maps", "now") == 18);

	fill(g.ram + DATA_IOVA, 16 * 4096, 4);
	check(chan_begin(&g, 0));
	chan_push(&g, 0, base, DATA_IOVA, 16 * 4096, LAST);
	chan_doorbell(&g, 0);
	check(chan_wait_done(&g, 0));
	for (i = 0; i < 16; i++)
		check(!memcmp(g.pmem + (15 - i) * 4096, g.ram + DATA_IOVA + i * 4096, 4096));

	check(guest_unmap(&g, base + 100, 4096) == EINVAL);
	check(guest_unmap(&g, base + 3 * 4096, 2 * 4096) == 0);
	check(guest_unmap(&g, base + 3 * 4096, 2 * 4096) == 0);	/* nothing there: no harm */
	check(dev_stat(0, "maps", "now") == 16 && dev_stat(0, "maps", "most") == 18);
	copy_fails(&g, base, DATA_IOVA, 16 * 4096, LAST, ERR_WRITE_DATA);
	guest_close(&g);
	stop(pid);
}

static void test_many_maps(void)
{
	const __u64 base = 16ULL << 30;
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	guest_open(&g, sock0);
	for (i = 0; i < 20000 && !failed; i++)
		check(!guest_map(&g, base + (__u64)i * 8192, 4096, VU_MAP_READ, g.pmem_fd, 0));
	check(dev_stat(0, "maps", "most") == 20002);
	check(!guest_unmap(&g, base, 20000ULL * 8192));
	check(dev_stat(0, "maps", "now") == 2);
	guest_close(&g);
	stop(pid);
}

static void wait_disconnected(void)
{
	int i;

	for (i = 0; i < 1000 && strstr(say("stats"), "\"connected\":true"); i++)
		usleep(2000);
	check(!strstr(reply, "\"connected\":true"));
}

/* The memory is gone under a running chain: a fault for the guest, nothing worse for us. */
static void test_unmap_while_running(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	long long done;

	guest_open(&g, sock0);
	check(chan_begin(&g, 0) && chan_begin(&g, 1));
	check(accepted("reset-stats"));
	push_same(&g, 0, 1000, MIB);
	push_same(&g, 1, 1000, MIB);
	chan_doorbell(&g, 0);
	chan_doorbell(&g, 1);
	check(!guest_unmap(&g, PMEM_IOVA, PMEM_SIZE));
	memset(g.pmem, 0xee, 8 * MIB);		/* nobody may write there any more */
	check(chan_wait_state(&g, 0, STATE_HALTED));
	check(chan_wait_state(&g, 1, STATE_HALTED));
	usleep(10000);
	check(g.pmem[0] == 0xee && g.pmem[MIB - 1] == 0xee && g.pmem[4 * MIB] == 0xee);
	check(chan_read(&g, 0, CHAN_ERR, 4) == ERR_WRITE_DATA);
	done = total("descriptors");
	check(done < 2000 && total("bytes") == done * MIB);
	guest_close(&g);
	stop(pid);
}

static void test_client_returns(void)
{
	pid_t pid = start(NULL, NULL);
	struct guest g;
	int i;

	for (i = 0; i < 5; i++) {
		guest_open(&g, sock0);
		check(accepted("rate 0 * 20 5"));
		check(chan_begin(&g, 0) && chan_begin(&g, 3));
		push_same(&g, 0, 500, MIB);
		push_same(&g, 3, 500, MIB);
		chan_doorbell(&g, 0);
		chan_doorbell(&g, 3);
		check(accepted("stall 0 1 1"));
		guest_close(&g);		/* in the middle of all that */
		wait_disconnected();
		check(dev_stat(0, "maps", "now") == 0);
		check(!strstr(say("stats"), "\"stalled\":true"));
	}
	check(accepted("rate * * 0 0"));
	check(dev_stat(0, "faults", "read") == 0 && dev_stat(0, "faults", "write") == 0);
	guest_open(&g, sock0);
	check(chan_state(&g, 0) == STATE_HALTED);
	check(chan_begin(&g, 0));
	guest_close(&g);
	stop(pid);
}

static void test_bad_messages(void)
{
	__u8 junk[64] = { 0 };
	struct vu_region_rw rw = { .region = VU_REGION_BAR0, .count = 16 };
	struct vu_set_irqs irqs = {
		.argsz = sizeof(irqs),
		.flags = VU_SET_EVENTFD | VU_SET_TRIGGER,
		.index = VU_IRQ_MSIX,
		.start = 0xffffffff,
		.count = 2,
	};
	pid_t pid = start(NULL, NULL);
	struct guest g;

	guest_connect(&g, sock0);
	check(guest_call(&g, 99, junk, 8, NULL, 0) == EOPNOTSUPP);
	check(guest_call(&g, VU_REGION_IO_FDS, junk, 64, NULL, 0) == EOPNOTSUPP);
	check(guest_call(&g, VU_DMA_MAP, junk, 8, NULL, 0) == EINVAL);
	check(guest_call(&g, VU_SET_IRQS, &irqs, sizeof(irqs), NULL, 0) == EINVAL);
	check(guest_call(&g, VU_REGION_READ, &rw, sizeof(rw), NULL, 0) == EINVAL);
	rw.count = 4;
	rw.offset = ~0ULL - 1;
	check(guest_call(&g, VU_REGION_READ, &rw, sizeof(rw), NULL, 0) == EINVAL);
	rw.offset = 0;
	check(guest_call(&g, VU_REGION_WRITE, &rw, sizeof(rw), NULL, 0) == EINVAL);
	rw.region = 77;
	check(guest_call(&g, VU_REGION_READ, &rw, sizeof(rw), NULL, 0) == EINVAL);
	check(guest_read(&g, VU_REGION_BAR0, REG_VERSION, 1) == HW_VERSION);

	check(guest_send_raw(&g, VU_DMA_MAP, 1U << 30, junk, sizeof(junk)));
	check(guest_call(&g, VU_RESET, NULL, 0, NULL, 0) == -1);	/* that was too much */
	guest_close(&g);
	guest_connect(&g, sock0);
	check(guest_send_raw(&g, VU_RESET, 3, junk, 0));
	check(guest_call(&g, VU_RESET, NULL, 0, NULL, 0) == -1);
	guest_close(&g);
	guest_connect(&g, sock0);
	guest_close(&g);
	stop(pid);
}

/* ---- cases: control ---- */

static void test_control_errors(void)
{
	static const char * const bad[] = {
		"", "nonsense", "stats now", "rate 0 0 1", "rate 2 0 1 1", "rate 0 4 1 1",
		"rate -1 0 1 1", "rate 0 0 nan 1", "rate 0 0 -5 1", "rate 0 0 1 1x", "rate x 0 1 1",
		"cap 0", "cap 9 100", "cap 0 fast", "stall 0 0 2", "stall 0 0 -1", "delay 0 0 1.5",
		"err 0 0 0 0", "err 0 0 101 0", "err 0 0 300 0", "err 0 0 10000 0",
		"err 0 0 20000 0", "err 0 0 202 0", "err 0 0 80000 0", "err 0 0 zz 0",
		"err 0 0 100 -1", "err 0 0 ffffffffffffffffff 0", "err 0 0 -100 0",
		"a b c d e f g h i j",
	};
	pid_t pid = start(NULL, NULL);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (!check(rejected(bad[i])))
			printf("# not refused: \"%s\": %s", bad[i], reply);
	check(accepted("err * * 100 5") && accepted("err 0 1 0x200 0") && accepted("err 0 1 42 0"));
	check(accepted("rate * 1 1000.5 7.41") && accepted("cap * 5000"));
	check(accepted("delay * * 0"));
	check(accepted("  stall\t0  0 0\r"));
	check(!strncmp(say("help"), "{\"ok\":true,", 11));
	check(find_number(find_device(0), "cap_mb_per_s") == 5000);
	stop(pid);
}

/* Several lines in one write, one line in several, lines too long, clients that come and go. */
static void test_control_pieces(void)
{
	char text[8192];
	pid_t pid = start(NULL, NULL);
	int a = connect_to(ctl), b = connect_to(ctl), i;

	check(write(a, "sta", 3) == 3);
	usleep(20000);
	check(!strncmp(say_to(b, "stats"), "{\"ok\":true", 10));
	check(!strncmp(say_to(a, "ts"), "{\"ok\":true,\"devices\"", 20));
	check(write(a, "reset-stats\nnonsense\nreset", 26) == 26);
	check(read_line(a, reply, sizeof(reply)) && !strcmp(reply, "{\"ok\":true}\n"));
	check(read_line(a, reply, sizeof(reply)) && !strncmp(reply, "{\"ok\":false", 11));
	check(!strcmp(say_to(a, "-stats"), "{\"ok\":true}\n"));

	memset(text, 'x', sizeof(text));
	text[5000] = '\0';
	check(!strncmp(say_to(b, text), "{\"ok\":false", 11));	/* one answer to one line */
	check(!strcmp(say_to(b, "reset-stats"), "{\"ok\":true}\n"));
	close(b);

	for (i = 0; i < 40; i++) {	/* more than it keeps at once: they are served in turn */
		b = connect_to(ctl);
		check(!strcmp(say_to(b, "reset-stats"), "{\"ok\":true}\n"));
		close(b);
	}
	check(!strcmp(say_to(a, "reset-stats"), "{\"ok\":true}\n"));
	close(a);
	stop(pid);
}

/* A client that asks and never reads must not hold up the others. */
static void test_control_deaf_client(void)
{
	pid_t pid = start(NULL, NULL);
	int deaf = connect_to(ctl), i, answers = 0;
	ssize_t sent = 0;

	for (i = 0; i < 3000; i++) {
		ssize_t n = send(deaf, "stats\n", 6, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n != 6)
			break;
		sent += n;
	}
	check(accepted("reset-stats"));
	while (answers < sent / 6 && read_line(deaf, reply, sizeof(reply)))
		answers++;
	check(answers == sent / 6);
	close(deaf);
	stop(pid);
}

/* ---- cases: pace ---- */

/* A sanitizer makes copies so slow that only the lower limit of a time means something. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
static const bool slow_build = true;
#else
static const bool slow_build;
#endif

/*
 * Never faster than the model. How much slower depends on what else the machine does, so the upper
 * limit only catches a wrong unit; the figures are printed.
 */
static void check_pace(const char *what, double took, double model)
{
	printf("# %s: %.4f s, model %.4f s (%+.2f %%)\n", what, took, model,
	       (took / model - 1) * 100);
	check(took > model * 0.97);
	check(slow_build || took < model * 3 + 1);
}

static double run_chans(struct guest *g, int nchans, int count, __u32 size)
{
	double t;
	int ch;

	for (ch = 0; ch < nchans; ch++)
		push_same(g, ch, count, size);
	t = now_s();
	for (ch = 0; ch < nchans; ch++)
		chan_doorbell(g, ch);
	for (ch = 0; ch < nchans; ch++)
		check(chan_wait_done(g, ch));
	return now_s() - t;
}

/* One copy at a time, each waited for by its interrupt. */
static double run_single(struct guest *g, int count, __u32 size)
{
	double t = now_s();
	int i;

	for (i = 0; i < count; i++) {
		chan_write(g, 0, CHAN_CTRL, 2, CTRL_REARM);
		push_same(g, 0, 1, size);
		chan_doorbell(g, 0);
		check(chan_irqs(g, 0, true) == 1);
	}
	return now_s() - t;
}

static void test_pace(void)
{
	pid_t pid = start("-B", "1000");
	struct guest g;
	int ch;

	guest_open(&g, sock0);
	for (ch = 0; ch < 4; ch++)
		check(chan_begin(&g, ch));
	run_chans(&g, 4, 1, MIB);	/* first use of memory is slow */
	check_pace("-B 1000, 400 x 1 MiB", run_chans(&g, 1, 400, MIB), 400.0 * MIB / 1000 / MB);
	check(accepted("rate * * 500 0"));
	check_pace("500 MB/s, 4 channels of 500 x 64 KiB", run_chans(&g, 4, 500, 64 * KIB),
		   500.0 * 64 * KIB / 500 / MB);
	check(accepted("rate 0 0 0 400"));
	check_pace("400 us, 500 x 4 KiB", run_chans(&g, 1, 500, 4 * KIB), 500 * 0.0004);
	chan_irqs(&g, 0, true);
	check_pace("400 us, 500 x 4 KiB one by one", run_single(&g, 500, 4 * KIB), 500 * 0.0004);
	check(accepted("rate 0 0 11784 7.41"));
	check_pace("7.41 us + 11784 MB/s, 1000 x 4 KiB", run_chans(&g, 1, 1000, 4 * KIB),
		   1000 * 0.00000741 + 1000 * 4.0 * KIB / 11784 / MB);
	check(accepted("rate * * 1000 0") && accepted("cap 0 1000"));
	check_pace("cap 1000 MB/s, 4 channels of 100 x 1 MiB", run_chans(&g, 4, 100, MIB),
		   400.0 * MIB / 1000 / MB);
	check(accepted("rate * * 0 0") && accepted("cap * 0"));
	printf("# no limit, 4 channels of 1000 x 64 KiB: %.0f MB/s\n",
	       4000.0 * 64 * KIB / run_chans(&g, 4, 1000, 64 * KIB) / MB);
	guest_close(&g);
	stop(pid);
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
