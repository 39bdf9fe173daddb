/* The shape of the table that generate.py makes from syscalls.tbl. */
#ifndef CONDOR_CALLS_FORMAT_H
#define CONDOR_CALLS_FORMAT_H

#include <asm/unistd.h>
#include <stdint.h>

enum { CALL_COUNT = 512 };

enum how { HOW_UNKNOWN, HOW_LOCAL, HOW_RUNTIME, HOW_REMOTE, HOW_AS, HOW_REFUSED };

enum argument_kind {
    ARG_NONE,
    ARG_NUMBER,
    ARG_FD,
    ARG_AT,
    ARG_PATH,
    ARG_IN,
    ARG_OUT,
    ARG_IO,
    ARG_IN_COUNTED,
    ARG_OUT_COUNTED,
    ARG_IO_COUNTED,
};

enum value_kind { VALUE_NONE, VALUE_ARGUMENT, VALUE_NUMBER, VALUE_CWD, VALUE_EMPTY };

enum { CALL_NEW = 1, CALL_THERE = 2, CALL_HERE = 4, CALL_WAITS = 8 };

struct call {
    const char *name;
    uint8_t how;
    uint8_t flags;
    int16_t target; /* HOW_AS: the other call; HOW_REFUSED: the errno */
    struct {
        uint8_t kind;
        uint16_t parameter; /* bytes, or the argument that counts them */
    } arguments[6];
    struct {
        uint8_t kind;
        int32_t number;
    } values[6];
};

#endif
