/* refuse PROGRAM ARGUMENTS...: the program, under a filter with which the kernel answers some calls with EDQUOT.
 *
 * It stands in for a file system with quotas.  Refused are calls that allocate room, when one of their numbers is that
 * of no_room.h.  Everything that the program starts has the filter too, the shadow's threads and the runtime among it; of the
 * calls of a program under the runtime only the shadow's are met by it, as the trap of the runtime's own filter goes
 * before an errno.  A filter does not see what openat2 is asked for: it is one that this kernel does not have. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "no_room.h"

static const struct {
    unsigned call, argument, value;
} refused[] = {
    {SYS_write, 2, REFUSED_SIZE},     {SYS_pwrite64, 2, REFUSED_SIZE},        {SYS_writev, 2, REFUSED_PARTS},
    {SYS_pwritev, 2, REFUSED_PARTS},  {SYS_pwritev2, 2, REFUSED_PARTS},       {SYS_fallocate, 3, REFUSED_SIZE},
    {SYS_truncate, 1, REFUSED_SIZE},  {SYS_ftruncate, 1, REFUSED_SIZE},       {SYS_sendfile, 3, REFUSED_SIZE},
    {SYS_setxattr, 3, REFUSED_SIZE},  {SYS_copy_file_range, 4, REFUSED_SIZE}, {SYS_fsetxattr, 3, REFUSED_SIZE},
    {SYS_open, 2, REFUSED_MODE},      {SYS_openat, 3, REFUSED_MODE},          {SYS_creat, 1, REFUSED_MODE},
    {SYS_mkdir, 1, REFUSED_MODE},     {SYS_mkdirat, 2, REFUSED_MODE},         {SYS_mknod, 1, S_IFIFO | REFUSED_MODE},
    {SYS_mknodat, 2, S_IFIFO | REFUSED_MODE},
};
enum { CALLS = sizeof refused / sizeof *refused };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

int main(int count, char **words)
{
    struct sock_filter rules[6 + 5 * CALLS + 1] = {LOAD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
                                                   RETURN(SECCOMP_RET_ALLOW), LOAD(nr), UNLESS(SYS_openat2, 1),
                                                   RETURN(SECCOMP_RET_ERRNO | ENOSYS)};
    unsigned used = 6;
    for (int i = 0; i < CALLS; i++) {
        const struct sock_filter rule[5] = {LOAD(nr), UNLESS(refused[i].call, 3), LOAD(args[refused[i].argument]),
                                            UNLESS(refused[i].value, 1), RETURN(SECCOMP_RET_ERRNO | EDQUOT)};
        for (int j = 0; j < 5; j++)
            rules[used++] = rule[j];
    }
    rules[used++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    struct sock_fprog program = {used, rules};
    if (count > 1 && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
        !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
        execvp(words[1], words + 1);
    perror("refuse");
    return 1;
}
