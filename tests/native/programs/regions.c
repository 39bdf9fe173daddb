/* regions COUNT: so many regions with data, one page each, which no neighbour may be joined with.  It says when they
 * are there, waits for a byte, and tells whether each has what it had. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

int main(int count, char **words)
{
    long regions = count > 1 ? atol(words[1]) : 1000, wrong = 0;
    char *at = mmap((void *)0x300000000000, 2 * regions * PAGE, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at == MAP_FAILED)
        return 2;
    for (long i = 0; i < regions; i++) {
        snprintf(at + 2 * i * PAGE, PAGE, "region %ld", i);
        mprotect(at + 2 * i * PAGE, PAGE, PROT_READ);
        munmap(at + (2 * i + 1) * PAGE, PAGE);
    }
    puts("there");
    fflush(stdout);
    char byte;
    if (read(0, &byte, 1) != 1)
        return 3;
    for (long i = 0; i < regions; i++) {
        char text[40];
        snprintf(text, sizeof text, "region %ld", i);
        wrong += strcmp(at + 2 * i * PAGE, text) != 0;
    }
    printf("%ld wrong\n", wrong);
    return 0;
}
