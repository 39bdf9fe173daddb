/* Names and options of sockets, which are at home (shadow/sockets.c). */
#include "runtime/remote/read_ahead.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "sockets.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { OPTION_BYTES = 16 };

long give_name(void *to, uint32_t *size_at, uint32_t room, const uint8_t *name, uint32_t size)
{
    if (copy_user(to, name, size < room ? size : room))
        return -EFAULT;
    return size_at ? copy_user(size_at, &size, sizeof size) : 0;
}

struct told_name {
    uint32_t size;
    uint8_t bytes[NAME_ROOM];
};

static long name_of(struct trap *t)
{
    struct told_name told;
    struct vector out = {&told, sizeof told};
    struct request request = {.call = (uint16_t)t->number, .arguments = {(int)t->a[0]}};
    uint32_t room;
    long result = ask(t->self, &request, NULL, 0, &out, 1, NULL);
    if (result)
        return result;
    if (copy_user(&room, (void *)t->a[2], sizeof room))
        return -EFAULT;
    if ((int)room < 0)
        return -EINVAL;
    return give_name((void *)t->a[1], (uint32_t *)t->a[2], room, told.bytes, told.size);
}

long do_getsockname(struct trap *t) { return name_of(t); }
long do_getpeername(struct trap *t) { return name_of(t); }

long do_accept4(struct trap *t)
{
    struct told_name told;
    struct vector out = {&told, sizeof told};
    struct request request = {.call = __NR_accept4, .arguments = {(int)t->a[0], 0, 0, (int)t->a[3]}};
    uint32_t room = 0;
    if (t->a[1] && (copy_user(&room, (void *)t->a[2], sizeof room)))
        return -EFAULT;
    if ((int)room < 0)
        return -EINVAL;
    long fd = ask_waiting(t, &request, NULL, 0, &out, 1, NULL);
    if (fd >= 0 && t->a[1] && give_name((void *)t->a[1], (uint32_t *)t->a[2], room, told.bytes, told.size)) {
        close_home(t->self, (int)fd);
        return -EFAULT;
    }
    return fd;
}

long do_getsockopt(struct trap *t)
{
    uint8_t value[OPTION_BYTES];
    struct vector out = {value, sizeof value};
    struct request request = {.call = __NR_getsockopt, .arguments = {(int)t->a[0], (int)t->a[1], (int)t->a[2]}};
    uint32_t room;
    long size = ask(t->self, &request, NULL, 0, &out, 1, NULL);
    if (size < 0)
        return size;
    if (copy_user(&room, (void *)t->a[4], sizeof room))
        return -EFAULT;
    if ((int)room < 0)
        return -EINVAL;
    const uint32_t given = (uint32_t)size < room ? (uint32_t)size : room;
    if (copy_user((void *)t->a[3], value, given) || copy_user((void *)t->a[4], &given, sizeof given))
        return -EFAULT;
    return 0;
}
