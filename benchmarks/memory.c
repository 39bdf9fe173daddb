/* Fills argv[1] MiB of memory, then changes one page in a hundred each time it is given a byte. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    size_t size = (size_t)atoi(argv[1]) << 20;
    char *memory = malloc(size), byte;
    for (size_t i = 0; i < size; i += 8)
        *(size_t *)(memory + i) = i * 2654435761u + 1;
    for (;;) {
        if (write(1, "r", 1) < 0 || read(0, &byte, 1) < 1)
            return 0;
        for (size_t i = 0; i < size / 4096 / 100; i++)
            memory[(size_t)random() % (size / 4096) * 4096]++;
    }
}
