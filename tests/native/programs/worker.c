/* Works for a while in steps, writing its own file on the way: rewrites, appends, seeks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words)
{
    int steps = count > 2 ? atoi(words[2]) : 40;
    FILE *out = fopen(words[1], "w+");
    unsigned char *memory = calloc(1, 8 << 20);
    double sum = 0;
    for (int i = 0; i < steps; i++) {
        for (int j = 0; j < 3000000; j++)
            sum += j % 7 * 0.5;
        memset(memory + i * 4096 % (8 << 20), i, 4096);
        fseek(out, (i % 5) * 20, SEEK_SET);
        fprintf(out, "%03d %012.0f\n", i, sum);
        fseek(out, 0, SEEK_END);
        fprintf(out, "step %d\n", i);
        fflush(out);
    }
    unsigned total = 0;
    for (int i = 0; i < 8 << 20; i++)
        total = total * 31 + memory[i];
    printf("%.0f %u\n", sum, total);
    return 7;
}
