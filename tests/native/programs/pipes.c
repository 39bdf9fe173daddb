/* What pipes say of themselves: flags, room, packets, what is in them.  Argument: how long each step lasts in
 * milliseconds.  Every line that it writes is the same however it is run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 6, LARGE = 1 << 18, SMALL = 4096, FILL = 100000 };

static void tell(const char *what, const int pair[2])
{
    printf("%s: %x %x, room %d %d\n", what, fcntl(pair[0], F_GETFL), fcntl(pair[1], F_GETFL), fcntl(pair[0], F_GETPIPE_SZ),
           fcntl(pair[1], F_GETPIPE_SZ));
}

int main(int argc, char **argv)
{
    long ms = argc > 1 ? atol(argv[1]) : 0;
    static char bytes[FILL], back[FILL];
    int plain[2], large[2], small[2], quick[2], packets[2], changed[2];
    pipe(plain);
    pipe(large);
    printf("%d\n", fcntl(large[1], F_SETPIPE_SZ, LARGE));
    pipe(small);
    printf("%d\n", fcntl(small[0], F_SETPIPE_SZ, SMALL));
    pipe2(quick, O_NONBLOCK);
    pipe2(packets, O_DIRECT);
    pipe(changed);
    fcntl(changed[0], F_SETFL, O_NONBLOCK);
    memset(bytes, 'x', sizeof bytes);
    printf("filled %d\n", (int)write(large[1], bytes, sizeof bytes));
    write(packets[1], "ab", 2);
    write(packets[1], "cde", 3);
    for (int i = 0; i < STEPS; i++) {
        struct timespec t = {ms / 1000, ms % 1000 * 1000000};
        while (nanosleep(&t, &t))
            ;
        tell("plain", plain);
        tell("large", large);
        tell("small", small);
        tell("quick", quick);
        tell("packets", packets);
        tell("changed", changed);
        printf("nothing %d %d\n", read(quick[0], back, 1) < 0 ? errno : 0, read(changed[0], back, 1) < 0 ? errno : 0);
        fflush(stdout);
    }
    for (int i = 0; i < 2; i++)
        printf("a packet of %d\n", (int)read(packets[0], back, sizeof back));
    printf("back %d\n", (int)read(large[0], back, sizeof back) == FILL && !memcmp(bytes, back, FILL));
    return 0;
}
