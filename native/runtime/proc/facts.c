/* Who a process of the family is, and how it does.  Home knows who is there and what each runs, as every process says that
 * when it begins; how much time and memory it takes, the kernel here knows.  A program's broker asks it for all members.
 */
#include "facts.h"

#include "runtime/memory/shared_arena.h"
#include "runtime/process/broker.h"
#include "runtime/process/process.h"
#include "runtime/remote/channel.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { STATUS_ROOM = 1024, USUAL_PRIORITY = 20 };

/* A word of the kernel's, which may have a sign. */
static int64_t read_signed(const char **at)
{
    const bool negative = **at == '-';
    *at += negative;
    const int64_t value = (int64_t)read_number(at, 10);
    return negative ? -value : value;
}

/* What the kernel says of the process that has the number REAL here. */
static void ask_kernel(int real, struct facts *to)
{
    char text[STATUS_ROOM];
    to->state = 'S';
    to->fields[FIELD_PRIORITY] = USUAL_PRIORITY;
    to->fields[FIELD_THREADS] = 1;
    const long size = real ? broker_status(real, text, sizeof text - 1) : 0;
    if (size <= 0)
        return;
    text[size] = 0;
    const char *at = text + size;
    while (at > text && *at != ')')
        at--;
    if (at == text || strlen(at) < sizeof ") S ")
        return;
    to->state = at[2];
    at += 4;
    for (int i = 4; i <= FIELDS && *at; i++) {
        to->fields[i] = read_signed(&at);
        if (*at == ' ')
            at++;
    }
    if (to->fields[FIELD_SIZE] > (int64_t)ARENA_WHOLE_BYTES) /* places that are kept for what members may share */
        to->fields[FIELD_SIZE] -= (int64_t)ARENA_WHOLE_BYTES;
}

/* PID 0: this process. WORDS: room for what it runs. Returns 0 or -errno. */
long find_facts(struct thread *self, int pid, struct facts *to, char *words, size_t room)
{
    memset(to, 0, sizeof *to);
    to->own = !pid || pid == process.start.virtual_pid;
    to->words = words;
    const struct request who = {.call = OP_MEMBERS, .arguments = {MEMBER_TOLD, to->own ? process.start.virtual_pid : pid}};
    const struct vector out[] = {{&to->told, sizeof to->told}, {words, room}};
    const long got = ask(self, &who, NULL, 0, out, 2, NULL);
    if (got < 0)
        return -ENOENT;
    if ((uint64_t)to->told.path_bytes + to->told.argument_bytes > room)
        to->told.path_bytes = to->told.argument_bytes = 0;
    ask_kernel(to->told.real_pid, to);
    if (to->own) {
        to->state = 'R';
        to->fields[FIELD_THREADS] = threads_live;
    }
    return 0;
}

/* The first thread has the process's name. */
static const char *process_name(struct thread *self)
{
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        if (thread_at(slot)->state != THREAD_FREE && thread_at(slot)->virtual_id == process.start.virtual_pid)
            return thread_at(slot)->name;
    return self->name;
}

/* Tells home what this process runs, so that others may know. */
void tell_program(struct thread *self)
{
    const size_t length = strlen(process.program) + 1;
    size_t words = process.arguments_end - process.arguments_at;
    if (words > MOST_PROGRAM_BYTES - length)
        words = MOST_PROGRAM_BYTES - length;
    struct vector in[] = {{(void *)process_name(self), NAME_BYTES}, {process.program, length}, {(void *)process.arguments_at, words}};
    const struct request request = {.call = OP_PROGRAM, .arguments = {process.began_at, (int64_t)length}};
    tell_home(&request, in, 3);
    process.began_at = 0; /* home has it now */
}

/* The same of its name alone, which the first thread has changed. */
void tell_name(struct thread *self)
{
    struct vector in = {self->name, NAME_BYTES};
    const struct request request = {.call = OP_PROGRAM};
    if (self->virtual_id == process.start.virtual_pid)
        tell_home(&request, &in, 1);
}

/* For an image: when the process began. */
void note_beginning(struct thread *self)
{
    struct member_told told;
    const struct request who = {.call = OP_MEMBERS, .arguments = {MEMBER_TOLD, process.start.virtual_pid}};
    const struct vector out = {&told, sizeof told};
    if (ask(self, &who, NULL, 0, &out, 1, NULL) >= 0)
        process.began_at = told.began_at;
}
