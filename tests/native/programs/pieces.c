/* Memory in many pieces, also after a move: argument 1 says which kind; "moved" is a file that ends the waiting. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HOLES = 9000, GAPS = 40000 };

static char *fresh(size_t pages, char with)
{
    char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; at != MAP_FAILED && with && i < pages; i++)
        memset(at + i * PAGE, with, 64);
    return at;
}

static void be_moved(void)
{
    puts("ready");
    fflush(stdout);
    while (access("moved", F_OK))
        usleep(10000);
}

static int is(const char *at, size_t pages, char what)
{
    for (size_t i = 0; i < pages; i++)
        for (int k = 0; k < 64; k++)
            if (at[i * PAGE + k] != what)
                return 0;
    return 1;
}

/* Every second page is given up: zeros there, the others as they were. */
static int holes(void)
{
    char *at = fresh(2 * HOLES, 'x');
    be_moved();
    for (int i = 0; i < HOLES; i++)
        if (madvise(at + (size_t)i * 2 * PAGE, PAGE, MADV_DONTNEED))
            return 2;
    for (int i = 0; i < HOLES; i++)
        if (!is(at + (size_t)i * 2 * PAGE, 1, 0) || !is(at + (size_t)(i * 2 + 1) * PAGE, 1, 'x'))
            return 3;
    return 0;
}

/* Moved to a place of the program's choice and made larger there: what is new is zero. */
static int grown(void)
{
    char *low = fresh(16, 'a'), *high = fresh(16, 'b'), *place = fresh(16, 0);
    be_moved();
    char *found = mremap(low, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    return found != place || !is(place, 4, 'a') || !is(place + 4 * PAGE, 4, 0) || !is(low + 4 * PAGE, 12, 'a') ||
           !is(high, 16, 'b');
}

/* Moved, then given up there. */
static int given_up_elsewhere(void)
{
    char *from = fresh(16, 'a'), *place = fresh(16, 0);
    be_moved();
    if (mremap(from, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) != place || !is(place, 8, 'a'))
        return 2;
    madvise(place, 8 * PAGE, MADV_DONTNEED);
    return !is(place, 8, 0);
}

static int gaps(void)
{
    char *at = fresh(2 * GAPS, 0);
    int done = 0;
    while (done < GAPS && munmap(at + (size_t)done * 2 * PAGE, PAGE) == 0)
        done++;
    return done < 32000; /* what is beyond is the machine's limit, and an error */
}

int main(int count, char **words)
{
    const char *kind = count > 1 ? words[1] : "";
    int result = !strcmp(kind, "holes")     ? holes()
                 : !strcmp(kind, "grown")   ? grown()
                 : !strcmp(kind, "elsewhere") ? given_up_elsewhere()
                                            : gaps();
    printf("%s %d\n", kind, result);
    return result;
}
