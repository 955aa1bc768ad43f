/* SPDX-License-Identifier: GPL-2.0 */
/* What the cases of ioat-emu-test share: the emulator as a child process, its control socket. */
#ifndef IOAT_EMU_TEST_H
#define IOAT_EMU_TEST_H

#include <stdbool.h>
#include <sys/types.h>

#include "ioat-emu-client.h"

#define MB	1000000ULL
#define KIB	1024U
#define MIB	(1024U * 1024)

#define LAST	(DESC_INT | DESC_COMPLETION)

/* Sockets of the two devices, control socket, messages of the emulator. */
extern char sock0[64], sock1[64], ctl[64], log_file[64];
extern bool failed;
extern char reply[32768];	/* the last that the control socket said */

/* One line of a case; the case goes on, as the later lines often explain the first. */
#define check(cond)	check_at(cond, #cond, __FILE__, __LINE__)

bool check_at(bool cond, const char *text, const char *file, int line);
double now_s(void);

/* Arguments after the name, then NULL. A NULL among them ends the list early. */
pid_t spawn(const char *arg, ...);
int exit_status(pid_t pid);

#define status_of(...)	exit_status(spawn(__VA_ARGS__, NULL))

/* Two devices, a control socket, and one option that may be NULL. */
pid_t start(const char *opt, const char *val);
void stop(pid_t pid);

int connect_to(const char *path);
bool read_line(int fd, char *line, size_t room);
const char *say_to(int fd, const char *line);
const char *say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool accepted(const char *line);
bool rejected(const char *line);

/* Numbers out of the reply to "stats", -1 when there is no such number. */
long long find_number(const char *from, const char *name);
const char *find_device(int dev);
long long total(const char *name);
long long dev_stat(int dev, const char *group, const char *name);
long long chan_stat(int dev, int ch, const char *name);

void fill(__u8 *p, size_t len, unsigned int seed);
/* A ring full of copies of size bytes each, all from the same place to the same place. */
void push_same(struct guest *g, int ch, int count, __u32 size);

/* ioat-emu-test-control.c */
void test_options(void);
void test_sockets(void);
void test_ctl_client(void);
void test_control_errors(void);
void test_control_pieces(void);
void test_control_deaf_client(void);

/* ioat-emu-test-copy.c */
void test_discovery(void);
void test_device_reset(void);
void test_copy(void);
void test_all_channels(void);
void test_count_wraps(void);
void test_interrupts(void);
void test_suspend_and_reset(void);
void test_pace(void);

/* ioat-emu-test-error.c */
void test_injected_error(void);
void test_faults(void);
void test_bad_addresses(void);
void test_stall(void);
void test_delay(void);
void test_copy_across_maps(void);
void test_many_maps(void);
void test_unmap_while_running(void);
void test_client_returns(void);
void test_bad_messages(void);

#endif
