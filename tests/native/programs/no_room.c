/* What a program learns when there is no room for what it wants: one line for each call that allocates some.
 *
 * "no_room fill" uses up the room first, else something refuses these very numbers (refuse.c); "no_room short" is
 * for a limit that a write of a megabyte goes beyond.  A write that is not
 * waited for may tell of it later than a native one, but at its file's close at the latest: of writes the lines say
 * the first error until then, and what is in the file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "no_room.h"

static char bytes[1 << 20];
static const struct iovec parts[REFUSED_PARTS] = {{bytes, REFUSED_SIZE - 6}, {bytes, 1}, {bytes, 1}, {bytes, 1},
                                                  {bytes, 1}, {bytes, 1}, {bytes, 1}};

static const char *outcome(long result) { return result < 0 ? strerrorname_np(errno) : "done"; }

static void tell(const char *call, long result)
{
    printf("%s: %s\n", call, outcome(result));
    errno = 0;
}

static long write_plain(int fd) { return write(fd, bytes, REFUSED_SIZE); }
static long write_at(int fd) { return pwrite(fd, bytes, REFUSED_SIZE, 8); }
static long write_parts(int fd) { return writev(fd, parts, REFUSED_PARTS); }
static long write_parts_at(int fd) { return pwritev(fd, parts, REFUSED_PARTS, 8); }
static long write_parts_with_flags(int fd) { return pwritev2(fd, parts, REFUSED_PARTS, 8, 0); }

static const struct {
    const char *name;
    long (*write)(int fd);
    bool positioned;
} writes[] = {{"write", write_plain, false},
              {"pwrite", write_at, true},
              {"writev", write_parts, false},
              {"pwritev", write_parts_at, true},
              {"pwritev2", write_parts_with_flags, true}};

static long size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

/* As a careful program does it: what is left of a short write is tried again. */
static long write_all(int which, int fd)
{
    long result = writes[which].write(fd);
    if (result < 0 || result == REFUSED_SIZE)
        return result;
    size_t left = (size_t)(REFUSED_SIZE - result);
    return writes[which].positioned ? pwrite(fd, bytes, left, 8 + result) : write(fd, bytes, left);
}

/* Some bytes for which there is room, those for which there is none, and more; then the ways to learn of it. */
static void lose(int which, int flags, bool synced)
{
    int fd = open("given", O_WRONLY | flags);
    const char *told = "done";
    long result = write_all(which, fd);
    if (result < 0)
        told = outcome(result);
    else if (write(fd, "more", 4) < 0 || (synced && fsync(fd) < 0))
        told = outcome(-1);
    if (close(fd) < 0 && !strcmp(told, "done"))
        told = outcome(-1);
    printf("%s, flags %#x, %s: %s, %ld bytes\n", writes[which].name, flags, synced ? "fsync" : "close", told,
           size_of("given"));
}

/* As lose, but nothing at all is asked between the write and the close. */
static void close_at_once(int which)
{
    int fd = open("given", O_WRONLY);
    long result = write_all(which, fd);
    const char *told = outcome(result);
    if (close(fd) < 0 && result >= 0)
        told = outcome(-1);
    printf("%s and close: %s, %ld bytes\n", writes[which].name, told, size_of("given"));
}

/* Told once, a program may go on with the file. */
static void told_once(void)
{
    int fd = open("given", O_RDWR);
    const char *first = outcome(write_all(0, fd) < 0 ? -1 : fsync(fd));
    printf("the same file afterwards: %s", first);
    printf(", position %s", outcome(lseek(fd, 0, SEEK_SET)));
    printf(", fsync %s", outcome(fsync(fd)));
    const char *over = outcome(pwrite(fd, "x", 1, 0));
    if (close(fd) < 0 && !strcmp(over, "done"))
        over = outcome(-1);
    printf(", over what is there %s\n", over);
}

/* A write of which a part fits: the next one, or the close, tells why the rest does not. */
static void cut_short(bool positioned)
{
    int fd = open("large", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const char *told = "done";
    for (int i = 0; i < 4 && !strcmp(told, "done"); i++) {
        struct stat st;
        long result = !positioned      ? write(fd, bytes, sizeof bytes)
                      : fstat(fd, &st) ? -1
                                       : pwrite(fd, bytes, sizeof bytes, st.st_size);
        told = outcome(result);
    }
    if (close(fd) < 0 && !strcmp(told, "done"))
        told = outcome(-1);
    printf("cut short, %s: %s, %ld bytes\n", positioned ? "pwrite" : "write", told, size_of("large"));
    unlink("large");
}

static void fill(void)
{
    int fd = open("filler", O_WRONLY | O_CREAT, 0600);
    for (size_t size = sizeof bytes; size; size /= 4)
        while (write(fd, bytes, size) >= 0 && fsync(fd) >= 0)
            ;
    tell("filled", -1);
    tell("close", close(fd));
}

int main(int count, char **words)
{
    signal(SIGXFSZ, SIG_IGN);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (count > 1 && !strcmp(words[1], "short")) {
        cut_short(false);
        cut_short(true);
        return 0;
    }
    int given = open("given", O_RDWR | O_CREAT, 0600), source = open("source", O_RDWR | O_CREAT, 0600);
    if (write(given, "12345678", 8) != 8 || ftruncate(source, 2 * REFUSED_SIZE) || fsync(given) || fsync(source))
        abort();
    if (count > 1)
        fill();
    for (int i = 0; i < (int)(sizeof writes / sizeof *writes); i++) {
        lose(i, O_SYNC, false);
        lose(i, O_APPEND, false);
        lose(i, 0, true);
        lose(i, 0, false);
        close_at_once(i);
    }
    told_once();
    tell("fallocate", fallocate(given, 0, 0, REFUSED_SIZE));
    tell("fallocate beyond the end", fallocate(given, FALLOC_FL_KEEP_SIZE, 1 << 20, REFUSED_SIZE));
    tell("ftruncate", ftruncate(given, REFUSED_SIZE));
    tell("truncate", truncate("given", REFUSED_SIZE));
    lseek(given, 8, SEEK_SET);
    tell("copy_file_range", copy_file_range(source, NULL, given, NULL, REFUSED_SIZE, 0));
    tell("sendfile", sendfile(given, source, &(off_t){0}, REFUSED_SIZE));
    tell("setxattr", setxattr("given", "user.room", bytes, REFUSED_SIZE, 0));
    tell("fsetxattr", fsetxattr(given, "user.room", bytes, REFUSED_SIZE, 0));
    tell("mkdir", mkdir("folder", REFUSED_MODE));
    tell("mkdirat", mkdirat(AT_FDCWD, "folder", REFUSED_MODE));
    tell("open", open("new", O_WRONLY | O_CREAT, REFUSED_MODE));
    tell("open what must be new", open("new", O_WRONLY | O_CREAT | O_EXCL, REFUSED_MODE));
    tell("creat", creat("new", REFUSED_MODE));
    tell("mkfifo", mkfifo("pipe", REFUSED_MODE));
    if (count > 1) {
        tell("symlink", symlink("given", "symbolic"));
        tell("link", link("given", "other"));
        tell("rename", rename("given", "other"));
    }
    printf("%ld %ld %ld\n", size_of("given"), size_of("folder"), size_of("new"));
    return 0;
}
