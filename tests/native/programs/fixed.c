/* A program at fixed places, as old Lisps are: its heap follows its data and holds code that it writes itself. */
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

extern char end[];

int main(void)
{
    static const unsigned char code[] = {0x8d, 0x47, 0x01, 0xc3}; /* lea eax, [rdi + 1]; ret */
    personality(READ_IMPLIES_EXEC | ADDR_NO_RANDOMIZE);
    printf("%lx\n", (long)personality(0xffffffff));
    char *heap = sbrk(1 << 20);
    printf("near %d, absurd %d\n", heap >= end && (unsigned long)heap < 2ul << 30, brk((void *)0x8000000000000000));
    int n = 0;
    for (int round = 0; round < 200; round++) {
        int (*next)(int) = (int (*)(int))heap;
        memcpy(heap, code, sizeof code);
        for (int i = 0; i < 100000; i++)
            n = next(n);
        heap = sbrk(4096 + round);
        if (round % 10 == 9)
            sbrk(-4096);
    }
    printf("%d\n", n);
    return 0;
}
