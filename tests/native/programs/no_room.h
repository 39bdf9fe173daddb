/* What refuse.c refuses and no_room.c asks for. */
#include <sys/stat.h>

enum { REFUSED_SIZE = 12345, REFUSED_PARTS = 7, REFUSED_MODE = 0651 };
