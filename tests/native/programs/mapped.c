/* What becomes of a shared mapping of a file when it is cut, moved, grown, covered, made unreadable, made writable. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, READS = PROT_READ, BOTH = PROT_READ | PROT_WRITE };

static int fresh(const char *name, int pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, pages * PAGE))
        perror(name);
    return fd;
}

static char *map(int fd, int pages, int protection, int first)
{
    return mmap(NULL, (size_t)pages * PAGE, protection, MAP_SHARED, fd, first * PAGE);
}

static void cut(void)
{
    int fd = fresh("cut", 5);
    char *at = map(fd, 5, BOTH, 0);
    memset(at, 'a', 5 * PAGE);
    munmap(at + PAGE, PAGE); /* a hole; what is on both sides stays what it was */
    memset(at + 2 * PAGE, 'b', 3 * PAGE);
    munmap(at + 4 * PAGE, PAGE);
    at[0] = 'c';
    close(fd);
}

static void move(void)
{
    int fd = fresh("moved", 6);
    char *at = map(fd, 4, BOTH, 1), *place = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(at, 'a', 4 * PAGE);
    place = mremap(at + PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    memset(place, 'b', 2 * PAGE); /* pages 2 and 3 of the file */
    at[3 * PAGE] = 'c';
    pwrite(fd, "tail", 4, 5 * PAGE);
    char *longer = mremap(at + 3 * PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    printf("grown: %.4s %c\n", longer + PAGE, longer[0]);
    longer[PAGE + 4] = 'd';
    char *shorter = mremap(place, 2 * PAGE, PAGE, 0);
    shorter[1] = 'e';
}

static void cover(void)
{
    int fd = fresh("covered", 3);
    char *at = map(fd, 3, BOTH, 0);
    memset(at, 'a', 3 * PAGE);
    mmap(at + PAGE, PAGE, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(at, 'b', 3 * PAGE); /* of which the middle is nobody's */
}

static void protect(void)
{
    int fd = fresh("protected", 4);
    char *at = map(fd, 4, READS, 0);
    printf("made writable: %d\n", mprotect(at, 4 * PAGE, BOTH));
    memset(at, 'a', 4 * PAGE);
    mprotect(at, PAGE, PROT_NONE);
    mprotect(at + PAGE, PAGE, READS);
    printf("written back: %d\n", msync(at, 4 * PAGE, MS_SYNC));
    munmap(at, 2 * PAGE);
    char byte = 0;
    pread(fd, &byte, 1, 0);
    printf("what was unreadable: %c\n", byte);
}

static void several(void)
{
    int fd = fresh("several", 4), reads = open("several", O_RDONLY);
    char *one = map(fd, 4, BOTH, 0), *other = map(fd, 4, BOTH, 0);
    one[0] = 'a';
    other[PAGE] = 'b';
    pwrite(fd, "written", 7, 2 * PAGE);
    munmap(one, 4 * PAGE);
    munmap(other, 4 * PAGE);
    errno = 0;
    printf("for reading only: %d", map(reads, 1, BOTH, 0) == MAP_FAILED);
    printf(" %s, %d\n", strerror(errno), map(reads, 1, READS, 0)[0]);
}

int main(void)
{
    cut();
    move();
    cover();
    protect();
    several();
    return 0;
}
