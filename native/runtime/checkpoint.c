#include "runtime.h"
bool is_image;
void take_checkpoint(struct thread *self, struct ucontext *frame, struct siginfo *info) { (void)self; (void)frame; (void)info; }
void restart(unsigned long *stack) { (void)stack; die(1); }
