/* Memory that members of a family share: written once, by one of them, and shared again after a restart.
 *
 * What is mapped shared before a fork is one object of the kernel's, whose number the list of mappings shows.  An image
 * has, for each piece that a process has of such an object, where it lies; the table of the family says how long each
 * object is.  The first process makes them anew before it starts the others, who inherit them, and each puts its pieces
 * where they were.
 */
#include "shared_memory.h"

#include "shared_arena.h"
#include "runtime/checkpoint/image.h"
#include "memory.h"
#include "runtime/process/process.h"
#include "runtime/text.h"

/* Notes the shared mappings of LIST. FAMILY: home is asked which of them another member writes. */
long shared_memory_note(struct image_room *m, struct thread *family, long mappings)
{
    size_t count = 0;
    shared_count = 0;
    for (long i = 0; i < mappings; i++) {
        const struct mapping *each = &m->list[i];
        if (!each->shared)
            continue;
        if (shared_count == MOST_SHARED)
            return -E2BIG;
        m->pieces[count++] = (struct shared_piece){each->inode, each->offset, each->to - each->from};
        shared_memory[shared_count++] =
            (struct shared_region){each->from, each->to, each->inode, each->offset, each->protection, true};
    }
    if (!family)
        return 0;
    struct request request = {.call = OP_SHARED_MEMORY};
    struct vector in = {m->pieces, count * sizeof *m->pieces}, out = {m->writes, count};
    long failed = ask(family, &request, &in, 1, &out, 1, NULL);
    for (size_t i = 0; i < count && !failed; i++)
        shared_memory[i].in_image = m->writes[i];
    return failed;
}

/* The piece at FROM, if another member writes it. */
const struct shared_region *shared_memory_elsewhere(unsigned long from)
{
    for (size_t i = 0; i < shared_count; i++)
        if (shared_memory[i].from == from)
            return shared_memory[i].in_image ? NULL : &shared_memory[i];
    return NULL;
}

/* Whether it is the memory for files that members map. It is there already, and stays. */
static bool is_arena(uint64_t object) REQUIRES(one_thread);
static bool is_arena(uint64_t object)
{
    return process.arena && object == arena_object;
}

/* Before the first process of a family starts the others. */
bool shared_memory_make(struct revival *r)
{
    for (uint32_t i = 0; i < r->family->objects; i++) {
        struct object_image *object = &r->objects[i];
        if (is_arena(object->object)) {
            r->places[i] = ARENA_PLACE;
            continue;
        }
        r->places[i] = SYSTEM(__NR_mmap, 0, page_up(object->size), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (is_error(r->places[i]))
            return false;
    }
    return true;
}

/* Every member that needs them has them. */
void shared_memory_drop(const struct revival *r)
{
    for (uint32_t i = 0; r->family && i < r->family->objects; i++)
        if (r->places[i] != (long)ARENA_PLACE)
            SYSTEM(__NR_munmap, r->places[i], page_up(r->objects[i].size));
}

/* A mapping of the object that R stands for: of its own if no other member has it. */
static long shared_place(const struct revival *r, const struct shared_region *piece) REQUIRES(one_thread);
static long shared_place(const struct revival *r, const struct shared_region *piece)
{
    size_t size = piece->to - piece->from;
    if (is_arena(piece->object))
        return SYSTEM(__NR_mremap, ARENA_PLACE + piece->offset, 0, size, MREMAP_MAYMOVE);
    for (uint32_t i = 0; r->family && i < r->family->objects; i++)
        if (r->objects[i].object == piece->object && piece->offset + size <= page_up(r->objects[i].size))
            return SYSTEM(__NR_mremap, r->places[i] + (long)piece->offset, 0, size, MREMAP_MAYMOVE); /* once more */
    return SYSTEM(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* What members are to share is an image's private memory now, or was left out: it becomes sharable again. */
bool shared_memory_again(const struct revival *r)
{
    bool good = true;
    lock(&memory_lock);
    for (size_t i = 0; i < shared_count && good; i++) {
        const struct shared_region *piece = &shared_memory[i];
        size_t size = piece->to - piece->from;
        long at = shared_place(r, piece);
        good = !is_error(at);
        if (good && piece->in_image) {
            if (!(piece->protection & PROT_READ))
                SYSTEM(__NR_mprotect, piece->from, size, PROT_READ);
            memcpy((void *)at, (void *)piece->from, size);
        }
        if (good)
            SYSTEM(__NR_mprotect, at, size, piece->protection);
        good = good && SYSTEM(__NR_mremap, at, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, piece->from) == (long)piece->from;
        intervals_remove(&from_image, piece->from, piece->to);
    }
    unlock(&memory_lock);
    return good;
}
