/* Attacks from inside: each in a child process.  Prints of each how it ended: "WORD signal N" or "WORD errno N".
 *
 * A word is KIND:NUMBER:a0:...:a5, all but KIND in hexadecimal.  KIND:
 *   plain     from the program's own code
 *   jADDRESS  a jump to an instruction of the runtime's
 *   wADDRESS  the page there is made writable and executable, and a system-call instruction is put there; w0: one of
 *             the program's own pages
 *   int80, x32, sysenter: other entries of the kernel */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, NO_CODE = 250, MOST_ERRNO = 199, GOOD = 200 };

static long call_from(const void *instruction, long number, const long a[6])
{
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    long result;
    __asm__ volatile("call *%%rbx"
                     : "=a"(result)
                     : "0"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9), "b"(instruction)
                     : "memory", "rcx", "r11", "cc");
    return result;
}

/* A system-call instruction and a return from it at ADDRESS, wherever that is. */
static const void *put_code(unsigned long address)
{
    static const unsigned char code[] = {0x0f, 0x05, 0xc3};
    const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    if (!address)
        address = (unsigned long)mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long first = address & ~(PAGE - 1ul), last = (address + sizeof code - 1) & ~(PAGE - 1ul);
    if (mprotect((void *)first, last - first + PAGE, all) < 0)
        _exit(NO_CODE);
    memcpy((void *)address, code, sizeof code);
    return (void *)address;
}

static long act(const char *kind, long number, const long a[6])
{
    long result = 0;
    if (kind[0] == 'j')
        return call_from((void *)strtoul(kind + 1, NULL, 16), number, a);
    if (kind[0] == 'w')
        return call_from(put_code(strtoul(kind + 1, NULL, 16)), number, a);
    if (strcmp(kind, "plain") == 0)
        return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? -errno : 0;
    if (strcmp(kind, "int80") == 0)
        __asm__ volatile("int $0x80" : "=a"(result) : "0"(number), "b"(a[0]), "c"(a[1]), "d"(a[2]) : "memory");
    else if (strcmp(kind, "x32") == 0)
        __asm__ volatile("syscall" : "=a"(result) : "0"(0x40000000 | number), "D"(a[0]) : "rcx", "r11", "memory");
    else if (strcmp(kind, "sysenter") == 0)
        __asm__ volatile("sysenter" : "=a"(result) : "0"(number), "b"(a[0]) : "memory");
    return result;
}

static void attempt(const char *word)
{
    long a[6] = {0x77, 0x11, 0x7fffffff, 0x1, 0x12345, 0x33}, number;
    char kind[64];
    int status;
    if (sscanf(word, "%63[^:]:%lx:%lx:%lx:%lx:%lx:%lx:%lx", kind, &number, a, a + 1, a + 2, a + 3, a + 4, a + 5) < 2)
        exit(2);
    pid_t child = fork();
    if (child == 0) {
        alarm(200);
        long result = act(kind, number, a);
        _exit(result >= 0 ? GOOD : -result > MOST_ERRNO ? MOST_ERRNO : (int)-result);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        exit(3);
    if (WIFSIGNALED(status))
        printf("%s signal %d\n", word, WTERMSIG(status));
    else
        printf("%s errno %d\n", word, WEXITSTATUS(status));
}

/* The words, one a line of the standard input. */
int main(void)
{
    char word[256];
    while (fgets(word, sizeof word, stdin)) {
        word[strcspn(word, "\n")] = 0;
        attempt(word);
        fflush(stdout);
    }
    return 0;
}
