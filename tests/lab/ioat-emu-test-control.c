// SPDX-License-Identifier: GPL-2.0
/* Cases: options, sockets, the control protocol. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ioat-emu-test.h"

void test_options(void)
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

void test_sockets(void)
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

void test_ctl_client(void)
{
	pid_t pid = start(NULL, NULL);

	check(status_of("ctl", ctl, "stats") == 0);
	check(status_of("ctl", ctl, "rate", "0", "0", "1000", "5") == 0);
	check(status_of("ctl", ctl, "nonsense") == 1);
	check(status_of("ctl", ctl) == 2);
	stop(pid);
	check(status_of("ctl", ctl, "stats") == 1);
}

void test_control_errors(void)
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
void test_control_pieces(void)
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
void test_control_deaf_client(void)
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
