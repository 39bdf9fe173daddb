/* The children of this process: see children.c. */
#ifndef RUNTIME_CHILDREN_H
#define RUNTIME_CHILDREN_H

#include "../protocol.h"
#include "thread.h"

extern struct lock children_lock;

struct child {
    int virtual_id, real_id; /* 0: unused */
    int news;     /* CLD_STOPPED, CLD_CONTINUED: what a wait would have told of it when this process was parked */
    int stop;     /* then: the signal that stopped it, which is to be told, not that which stops it again; else 0 */
    int state;    /* KIN_... in the image that this process comes from, until it has come back */
    bool told;    /* the last that a wait told of it is that it has stopped */
};

struct child *free_child(void) REQUIRES(children_lock);
int new_virtual_id(int real_id) REQUIRES(children_lock);
int first_virtual_id(int real_id);
int virtual_child_id(int real_id, bool forget);
int told_stop(int real_id, int number, bool taken);
void told_other(int real_id);
bool child_is_news(int real_id);
void child_has_stopped(int real_id, int number);
void note_childrens_news(void) REQUIRES(one_thread);
void children_stop_again(struct thread *self, bool begins) REQUIRES(one_thread);

#endif
