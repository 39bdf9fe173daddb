/* Prints the record of argv[2] bytes for the key 00 01 02 … and the count argv[1]; "BAD" if it does not open again,
 * or opens after a change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include SEAL_HEADER

int main(int argc, char **argv)
{
    size_t size = strtoul(argv[2], NULL, 10);
    unsigned char *text = malloc(size + 1), *record = malloc(size + 64), *back = malloc(size + 1);
    uint32_t key[8];
    for (int i = 0; i < 8; i++)
        key[i] = 0x03020100u + 0x04040404u * (unsigned)i;
    for (size_t i = 0; i < size; i++)
        text[i] = (unsigned char)(i * 7 + 3);
    struct seal seal = seal_make(key, SEAL_TO_HOME);
    seal.count = strtoull(argv[1], NULL, 10);
    struct seal other = seal;
    size_t whole = seal_record(&seal, text, size, record);
    for (size_t i = 0; i < whole; i++)
        printf("%02x", record[i]);
    if (!seal_open(&other, record, size, back) || memcmp(text, back, size))
        printf("BAD");
    if (seal_open(&other, record, size, back)) /* it was another record's turn */
        printf("BAD");
    other.count--;
    record[whole - 1 - size / 2] ^= 4;
    if (seal_open(&other, record, size, back))
        printf("BAD");
    return 0;
}
