/* replay FILE...: what the fuzzer does with each of these inputs, without a fuzzer: so that any compiler will do. */
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>

int LLVMFuzzerInitialize(int *count, char ***words);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t data[16 << 20];

int main(int count, char **words)
{
    LLVMFuzzerInitialize(&count, &words);
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(words[i], "r");
        if (!file) {
            perror(words[i]);
            return 1;
        }
        size_t size = fread(data, 1, sizeof data, file);
        fclose(file);
        LLVMFuzzerTestOneInput(data, size);
    }
    return 0;
}
