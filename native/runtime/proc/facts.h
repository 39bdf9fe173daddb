/* Who a process of the family is, and how it does: see facts.c. */
#ifndef RUNTIME_PROC_FACTS_H
#define RUNTIME_PROC_FACTS_H

#include "protocol.h"
#include "runtime/process/thread.h"

/* Numbers of fields as proc(5) counts them in a process's stat. */
enum { FIELD_MINOR_FAULTS = 10, FIELD_PRIORITY = 18, FIELD_THREADS = 20,
       FIELD_SIZE = 23, FIELD_RESIDENT = 24, FIELDS = 52 };

struct facts {
    struct member_told told;
    bool own;
    char state;
    int64_t fields[FIELDS + 1]; /* as the kernel where it runs has them */
    char *words;                /* the program's path and arguments, as many bytes as TOLD says */
};

long find_facts(struct thread *self, int pid, struct facts *to, char *words, size_t room);
void tell_program(struct thread *self);
void tell_name(struct thread *self);
void note_beginning(struct thread *self);

#endif
