/* condor_benchmark mips|kflops: this machine's speed as one number on standard output.
 *
 * mips: millions of integer operations per second, in a loop over a small table: add, exclusive or, shift, compare and
 * branch, load, store; their number per round is counted below, not guessed.  kflops: thousands of floating-point
 * operations per second in solving 200 linear equations by elimination with partial pivoting, 2/3 n^3 + 2 n^2 of them.
 * Processor time is measured, not the clock's, so other work on the machine changes little; the process is nice.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EQUATIONS = 200, TABLE = 1024, ROUNDS = 1 << 20, OPERATIONS = 10 };

static const double LEAST_S = 0.3;
static uint32_t table[TABLE];
static double matrix[EQUATIONS][EQUATIONS + 1];

static double used_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Per round: index (and), load, xor, shift, add, compare+branch, add, store, counter, compare+branch: ten. */
static uint32_t integer_rounds(uint32_t seed)
{
    uint32_t sum = seed;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t at = sum & (TABLE - 1);
        uint32_t value = table[at] ^ round;
        sum += value << 3;
        if (value & 0x40)
            sum += 0x9e3779b9u;
        table[at] = sum;
    }
    return sum;
}

static void set_up(void)
{
    uint32_t state = 12345;
    for (int row = 0; row < EQUATIONS; row++)
        for (int column = 0; column <= EQUATIONS; column++) {
            state = state * 1664525u + 1013904223u;
            matrix[row][column] = (double)state / 4294967296.0 - 0.5;
        }
}

static void swap_rows(int one, int other)
{
    double kept[EQUATIONS + 1];
    memcpy(kept, matrix[one], sizeof kept);
    memcpy(matrix[one], matrix[other], sizeof kept);
    memcpy(matrix[other], kept, sizeof kept);
}

static double solve(void)
{
    for (int step = 0; step < EQUATIONS; step++) {
        int pivot = step;
        for (int row = step + 1; row < EQUATIONS; row++)
            if (fabs(matrix[row][step]) > fabs(matrix[pivot][step]))
                pivot = row;
        if (pivot != step)
            swap_rows(step, pivot);
        for (int row = step + 1; row < EQUATIONS; row++) {
            double factor = matrix[row][step] / matrix[step][step];
            for (int column = step; column <= EQUATIONS; column++)
                matrix[row][column] -= factor * matrix[step][column];
        }
    }
    for (int row = EQUATIONS - 1; row >= 0; row--) {
        double value = matrix[row][EQUATIONS];
        for (int column = row + 1; column < EQUATIONS; column++)
            value -= matrix[row][column] * matrix[column][EQUATIONS];
        matrix[row][EQUATIONS] = value / matrix[row][row];
    }
    return matrix[0][EQUATIONS];
}

static double mips(volatile uint32_t *sink)
{
    double began = used_s(), spent = 0;
    double rounds = 0;
    while ((spent = used_s() - began) < LEAST_S) {
        *sink += integer_rounds(*sink + 1);
        rounds += ROUNDS;
    }
    return rounds * OPERATIONS / spent / 1e6;
}

static double kflops(volatile double *sink)
{
    double n = EQUATIONS, spent = 0, times = 0;
    while (spent < LEAST_S) {
        set_up();
        double began = used_s();
        *sink += solve();
        spent += used_s() - began;
        times++;
    }
    return times * (2.0 * n * n * n / 3.0 + 2.0 * n * n) / spent / 1e3;
}

int main(int count, char **words)
{
    volatile uint32_t integer_sink = 0;
    volatile double real_sink = 0;
    if (nice(19) == -1) { /* already as nice as can be, or -1 is its niceness: either way it measures the same */
    }
    if (count == 2 && strcmp(words[1], "mips") == 0)
        printf("%.0f\n", mips(&integer_sink));
    else if (count == 2 && strcmp(words[1], "kflops") == 0)
        printf("%.0f\n", kflops(&real_sink));
    else {
        fprintf(stderr, "usage: condor_benchmark mips|kflops\n");
        return 2;
    }
    return 0;
}
