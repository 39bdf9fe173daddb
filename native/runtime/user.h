/* Memory of the program's, which may not be there. 0 or -EFAULT. */
#ifndef RUNTIME_USER_H
#define RUNTIME_USER_H

#include "abi.h"

long copy_user(void *to, const void *from, size_t size);
long copy_path(char *to, const char *from); /* length with the zero, -ENAMETOOLONG, -EFAULT */
long touch_for_reading(const void *from, size_t size);
long swap_user(uint32_t *word, uint32_t *seen, uint32_t fresh); /* 0; 1: SEEN is what it is instead; -EFAULT */
bool fix_fault(struct ucontext *frame);

#endif
