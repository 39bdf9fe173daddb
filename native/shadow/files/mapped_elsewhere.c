/* Files that others at home have mapped or locked, which a family then maps not: each would have memory of its own, and undo
 * what the other writes.
 *
 * Another family, of this host or another one of the same user, is known by a *mark*: a socket with an abstract name made of
 * the file's number, which goes with the process whatever becomes of it.  A program at home is known by /proc.
 */
#include "shadow/serve.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static socklen_t mark_name(const struct stat *st, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int length = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "condor-mapped/%u/%llx/%llx", (unsigned)geteuid(),
                                (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Whether the mark is one that this user's process has made: others may use any name.  Nobody is ever let in, so one that
 * takes no more visitors says nothing of whose it is, and counts for nothing. */
static bool is_ours(const struct sockaddr_un *name, socklen_t size)
{
    struct ucred peer = {0};
    socklen_t room = sizeof peer;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool ours = fd >= 0 && connect(fd, (const struct sockaddr *)name, size) == 0 &&
                      getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &room) == 0 && peer.uid == geteuid();
    if (fd >= 0)
        close(fd);
    return ours;
}

/* Returns a descriptor, or -1; *ELSEWHERE: another family has marked the file. */
static int mark_mapped(const struct stat *st, bool *elsewhere)
{
    struct sockaddr_un name;
    const socklen_t size = mark_name(st, &name);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *elsewhere = false;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    *elsewhere = fd >= 0 && errno == EADDRINUSE && is_ours(&name, size);
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A line of /proc/PID/maps: "7f..-7f.. rw-s 00000000 08:01 1234   /path". */
static bool is_shared_line(const char *line, const struct stat *st)
{
    unsigned of_major, of_minor;
    unsigned long long inode;
    const char *mode = strchr(line, ' ');
    return mode && strlen(mode) > 5 && mode[2] == 'w' && mode[4] == 's' &&
           sscanf(mode, " %*s %*s %x:%x %llu", &of_major, &of_minor, &inode) == 3 && inode == st->st_ino &&
           makedev(of_major, of_minor) == st->st_dev;
}

static bool maps(const char *pid, const struct stat *st)
{
    char name[64], *line = NULL;
    size_t room = 0;
    bool found = false;
    snprintf(name, sizeof name, "/proc/%.20s/maps", pid);
    FILE *file = fopen(name, "re");
    while (file && !found && getline(&line, &room, file) > 0)
        found = is_shared_line(line, st);
    if (file)
        fclose(file);
    free(line);
    return found;
}

/* A program at home that has the file mapped shared and writable, as far as this user may see; 0: none. */
static int who_maps(const struct stat *st)
{
    int found = 0;
    DIR *all = opendir("/proc");
    for (struct dirent *one; all && !found && (one = readdir(all));)
        if (isdigit((unsigned char)one->d_name[0]) && atoi(one->d_name) != getpid() && maps(one->d_name, st))
            found = atoi(one->d_name);
    if (all)
        closedir(all);
    return found;
}

/* A program at home that has locked the file; 0: none.  Families' own locks belong to open files, or to this process. */
static int who_locks(const struct stat *st)
{
    char line[256], kind[16];
    int found = 0;
    FILE *file = fopen("/proc/locks", "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        unsigned of_major, of_minor;
        unsigned long long inode;
        int pid;
        if (sscanf(line, "%*s %15s %*s %*s %d %x:%x:%llu", kind, &pid, &of_major, &of_minor, &inode) != 5)
            continue; /* also of one that waits: its kind is an arrow */
        if (pid > 0 && pid != getpid() && inode == st->st_ino && makedev(of_major, of_minor) == st->st_dev &&
            (!strcmp(kind, "POSIX") || !strcmp(kind, "FLOCK")))
            found = pid;
    }
    if (file)
        fclose(file);
    return found;
}

static bool used_at_home(const struct stat *st, char *who, size_t room)
{
    const int locks = who_locks(st), pid = locks ? locks : who_maps(st);
    char name[64], program[32] = "a program";
    if (!pid)
        return false;
    snprintf(name, sizeof name, "/proc/%d/comm", pid);
    FILE *file = fopen(name, "re");
    if (file && fgets(program, sizeof program, file))
        program[strcspn(program, "\n")] = 0;
    if (file)
        fclose(file);
    snprintf(who, room, "%s (process %d) has it %s", program, pid, locks ? "locked" : "mapped");
    return true;
}

bool mapped_elsewhere(struct session *s, const struct file *file, const struct stat *st, bool looks, int *mark)
{
    char link[64], path[100] = {0}, who[100] = "another job of this user has it mapped", text[240];
    bool elsewhere;
    *mark = mark_mapped(st, &elsewhere);
    if (!looks || (!elsewhere && !used_at_home(st, who, sizeof who)))
        return false;
    if (*mark >= 0)
        close(*mark);
    *mark = -1;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->real);
    const bool named = readlink(link, path, sizeof path - 1) > 0;
    snprintf(text, sizeof text, "%s cannot be mapped shared and writable: %s", named ? path : "a file", who);
    if (__atomic_exchange_n(&s->root->refused_inode, st->st_ino, __ATOMIC_RELAXED) != st->st_ino)
        tell(s->root, SHADOW_REFUSED, EAGAIN, s->virtual_pid, text);
    return true;
}
