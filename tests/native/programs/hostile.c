/* Attacks from inside: each in a child process, each must die. Prints "NUMBER alive" for those that did not. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned char *instruction; /* a system call of the runtime's */

static void jump(long number, const long a[6])
{
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("jmp *%%rbx"
                     :
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9), "b"(instruction)
                     : "memory", "rcx", "r11");
}

/* Returns the signal the attempt died of. */
static int attempt(int kind, long number, const long a[6])
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(5);
        if (kind == 0)
            jump(number, a);
        else if (kind == 1)
            __asm__ volatile("int $0x80" : : "a"(20) : "memory");
        else
            __asm__ volatile("syscall" : : "a"(0x40000000 | number) : "rcx", "r11", "memory");
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(int count, char **words)
{
    const long wrong[6] = {0x77, 0x11, 0x7fffffff, 0x1, 0x12345, 0x33};
    instruction = (const unsigned char *)0x6fff00000000;
    while (instruction[0] != 0x0f || instruction[1] != 0x05)
        instruction++;
    int died = 0;
    for (int i = 1; i < count; i++) {
        long a[6], number;
        memcpy(a, wrong, sizeof a);
        int fields = sscanf(words[i], "%ld:%lx:%lx:%lx:%lx", &number, &a[0], &a[1], &a[2], &a[3]);
        int by = attempt(0, number, a);
        if (by != 31)
            printf("%s alive %d %d\n", words[i], by, fields);
        died += by == 31;
    }
    if (attempt(1, 0, wrong) != 31)
        printf("int 0x80 alive\n");
    if (attempt(2, 39, wrong) != 31)
        printf("x32 alive\n");
    printf("%d died\n", died);
    return 0;
}
