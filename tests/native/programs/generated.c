/* Code made at run time, in pages that came from an image: they stay executable when they are given up, and memory that
 * moved away leaves zeros. "moved" is a file that ends the waiting. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, ALL = PROT_READ | PROT_WRITE | PROT_EXEC, DONT_UNMAP = 4 };

static int run(char *at, int answer)
{
    const unsigned char code[] = {0xb8, (unsigned char)answer, 0, 0, 0, 0xc3}; /* mov $answer, %eax; ret */
    memcpy(at, code, sizeof code);
    return ((int (*)(void))at)() == answer;
}

int main(void)
{
    char *at = mmap(NULL, 4 * PAGE, ALL, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *kept = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int good = run(at, 1) && run(at + PAGE, 2);
    memset(kept, 'k', 4 * PAGE);
    puts("ready");
    fflush(stdout);
    while (access("moved", F_OK))
        usleep(10000);
    good = good && ((int (*)(void))at)() == 1;
    good = good && !madvise(at, PAGE, MADV_DONTNEED) && !at[0] && run(at, 3) && run(at + PAGE, 4);
    printf("code %d\n", good);
    char *there = mremap(kept, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | DONT_UNMAP, 0);
    int left = there != MAP_FAILED && there[0] == 'k' && there[4 * PAGE - 1] == 'k' && !kept[0] && !kept[3 * PAGE];
    if (left) {
        kept[0] = 'n';
        left = there[0] == 'k' && !madvise(there, PAGE, MADV_DONTNEED) && !there[0] && kept[0] == 'n';
    }
    printf("left behind %d\n", left);
    return !good + 2 * !left;
}
