/* A file that is mapped shared, and read, written and cut by descriptors as well: both see the same bytes. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, READS = PROT_READ, BOTH = PROT_READ | PROT_WRITE, ROUNDS = 300, LINE = 12 };

static int fresh(const char *name, int pages)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || ftruncate(fd, pages * PAGE))
        perror(name);
    return fd;
}

static char *map(int fd, size_t bytes, int protection)
{
    char *at = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        perror("mmap");
    return at;
}

/* Databases read through the mapping and write by calls, by whatever descriptor. */
static void written_by_calls(void)
{
    int fd = fresh("calls", 4), other = open("calls", O_WRONLY), appends = open("calls", O_WRONLY | O_APPEND);
    char *at = map(fd, 8 * PAGE, READS);
    printf("before: %d\n", at[0]);
    pwrite(fd, "pwrite", 6, PAGE - 3);
    write(other, "write", 5);
    write(other, "-more", 5);
    struct iovec parts[] = {{"one", 3}, {"two", 3}};
    writev(other, parts, 2);
    pwritev(fd, parts, 2, 2 * PAGE);
    printf("after: %.16s %.6s %.6s\n", at, at + PAGE - 3, at + 2 * PAGE);
    write(appends, "end", 3);
    pwrite(appends, "END", 3, 0); /* at the end all the same */
    printf("appended: %.6s\n", at + 4 * PAGE);
    static char large[3 * PAGE];
    memset(large, 'L', sizeof large);
    pwrite(fd, large, sizeof large, PAGE);
    printf("large: %c %c %c\n", at[PAGE], at[4 * PAGE - 1], at[4 * PAGE]);
}

/* What is stored is read by calls, and neither undoes the other within a page. */
static void stored(void)
{
    int fd = fresh("stored", 2), reads = open("stored", O_RDONLY);
    char *at = map(fd, 2 * PAGE, BOTH), seen[8] = "";
    memcpy(at + 10, "memory", 6);
    pread(reads, seen, 6, 10);
    printf("pread: %s\n", seen);
    lseek(reads, 12, SEEK_SET);
    read(reads, seen, 4);
    printf("read: %.4s at %ld\n", seen, (long)lseek(reads, 0, SEEK_CUR));
    pwrite(fd, "call", 4, 100);
    memcpy(at + 200, "again", 5);
    pwrite(fd, "CALL", 4, 202);
    munmap(at, 2 * PAGE);
    char page[PAGE];
    pread(reads, page, PAGE, 0);
    printf("kept: %.6s %.4s %.6s\n", page + 10, page + 100, page + 200);
}

static void cut_off(void)
{
    int fd = fresh("cut", 3);
    char *at = map(fd, 3 * PAGE, BOTH);
    memset(at, 'x', 3 * PAGE);
    ftruncate(fd, PAGE + 10);
    ftruncate(fd, 3 * PAGE);
    printf("cut: %c %d %d\n", at[PAGE + 9], at[PAGE + 10], at[2 * PAGE]);
    int punched = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE);
    printf("punched: %d\n", punched ? 0 : at[0]);
    munmap(at, 3 * PAGE);
    char page[PAGE];
    pread(fd, page, PAGE, PAGE);
    printf("file: %c %d\n", page[9], page[10]);
}

static void child_ends(void)
{
    int status;
    wait(&status);
    if (status)
        printf("child: %d\n", status);
}

/* By its name, as it is opened, and from file to file. */
static void cut_by_name(void)
{
    int fd = fresh("named", 2), from;
    char *at = map(fd, 2 * PAGE, BOTH), room[8];
    memset(at, 'y', 2 * PAGE);
    truncate("named", PAGE + 1);
    ftruncate(fd, 2 * PAGE);
    printf("by name: %c %d\n", at[PAGE], at[PAGE + 1]);
    memset(at, 'z', 2 * PAGE);
    close(open("named", O_WRONLY | O_TRUNC));
    ftruncate(fd, 2 * PAGE);
    printf("emptied: %d %d\n", at[0], at[PAGE]);
    from = open("source", O_RDWR | O_CREAT, 0644);
    write(from, "copied", 6);
    lseek(from, 0, SEEK_SET);
    if (copy_file_range(from, NULL, fd, NULL, 6, 0) < 0) /* as programs do then */
        write(fd, room, read(from, room, 6));
    printf("copied: %.6s\n", at);
}

/* Members with descriptors and mappings of their own. */
static void others(void)
{
    int fd = fresh("others", 2), said[2], heard[2];
    char *at = map(fd, 2 * PAGE, BOTH), word;
    pipe(said), pipe(heard);
    if (fork() == 0) {
        int reads = open("others", O_RDONLY), writes = open("others", O_WRONLY);
        char *seen = map(reads, 2 * PAGE, READS); /* for reading only, of a file that others change */
        write(said[1], "1", 1);
        read(heard[0], &word, 1);
        if (memcmp(seen, "parent", 6))
            _exit(1);
        pwrite(writes, "child", 5, PAGE);
        write(said[1], "2", 1);
        read(heard[0], &word, 1);
        _exit(memcmp(seen + 50, "by a call", 9) ? 2 : 0);
    }
    read(said[0], &word, 1);
    memcpy(at, "parent", 6);
    write(heard[1], "1", 1);
    read(said[0], &word, 1);
    printf("of the child: %.5s\n", at + PAGE);
    pwrite(fd, "by a call", 9, 50);
    write(heard[1], "2", 1);
    child_ends();
}

/* Two members append by one position each, and two share one, while a third has it mapped. */
static void appended(void)
{
    int fd = fresh("log", 0), shared = open("log", O_WRONLY | O_APPEND);
    size_t room = 4 * ROUNDS * LINE;
    char *at = map(fd, room, READS);
    for (int member = 0; member < 4; member++)
        if (fork() == 0) {
            int own = member < 2 ? open("log", O_WRONLY | O_APPEND) : shared;
            char line[LINE + 1];
            for (int i = 0; i < ROUNDS; i++) {
                snprintf(line, sizeof line, "%d says %04d\n", member, i);
                if (write(own, line, LINE) != LINE)
                    _exit(1);
            }
            _exit(0);
        }
    for (int member = 0; member < 4; member++)
        child_ends();
    char *file = malloc(room);
    int looks = open("log", O_RDONLY);
    long got = pread(looks, file, room, 0);
    printf("log: %ld, the same: %d\n", got, !memcmp(file, at, room));
    int lines[4] = {0};
    for (size_t i = 0; i < room; i += LINE)
        lines[at[i] - '0'] += at[i + LINE - 1] == '\n';
    printf("lines: %d %d %d %d\n", lines[0], lines[1], lines[2], lines[3]);
}

/* A database that may become large is mapped at its largest. */
static void much_room(void)
{
    int fd = fresh("room", 1);
    char *at = map(fd, 1ul << 40, BOTH);
    memcpy(at, "first", 5);
    pwrite(fd, "later", 5, 5 * PAGE);
    printf("room: %.5s %.5s\n", at, at + 5 * PAGE);
    msync(at, 6 * PAGE, MS_SYNC);
    munmap(at, 1ul << 40);
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    written_by_calls();
    stored();
    cut_off();
    cut_by_name();
    others();
    appended();
    much_room();
    return 0;
}
