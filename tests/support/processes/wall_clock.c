/* Moves the wall clock of a program by the seconds that a file holds; see wall_clock.py.
 *
 * Loaded by LD_PRELOAD. Sleeps, timeouts and all other clocks are the system's. Times that the kernel itself compares
 * with the wall clock (file stamps, absolute deadlines on CLOCK_REALTIME) are not moved.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *off_s;

__attribute__((constructor)) static void map_file(void)
{
	const char *path = getenv("KAFKA_DT_TEST_WALL_CLOCK");
	int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return;
	void *mapped = mmap(NULL, sizeof *off_s, PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (mapped != MAP_FAILED)
		off_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	/* Not through dlsym, which may itself ask for the time. */
	int result = (int)syscall(SYS_clock_gettime, clock, now);
	if (result == 0 && off_s != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += *off_s;
	return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	struct timespec precise;
	(void)zone; /* obsolete: always NULL */
	if (clock_gettime(CLOCK_REALTIME, &precise) != 0)
		return -1;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *result)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (result != NULL)
		*result = now.tv_sec;
	return now.tv_sec;
}
