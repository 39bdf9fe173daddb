/* The open files of a program as bytes, for its checkpoint, and back. */
#include "session.h"

long serve_describe(struct work *w) { (void)w; return -ENOSYS; }
long serve_adopt(struct work *w) { (void)w; return -ENOSYS; }
