/* Asks again and again where its first thread's stack is, which the C library reads in /proc/self/maps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void bounds(char **low, size_t *size)
{
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, (void **)low, size);
    pthread_attr_destroy(&attributes);
}

int main(void)
{
    char *low, *now, deep[400000];
    size_t size, least;
    int strange = 0;
    memset(deep, 1, sizeof deep);
    bounds(&low, &size);
    for (int round = 0; round < 1500; round++) {
        bounds(&now, &least);
        strange += now != low || least != size || (char *)&low < now || (char *)&low >= now + least;
        usleep(1000);
        deep[round * 100]++;
    }
    printf("%d %d\n", strange, deep[100]);
    return 0;
}
