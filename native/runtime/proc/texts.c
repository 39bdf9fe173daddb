/* The texts of files under /proc that tell of a process: this one, or another of the family. */
#include "texts.h"

#include "runtime/memory/memory.h"
#include "runtime/process/identity.h"
#include "runtime/process/process.h"
#include "runtime/trap.h"
#include "runtime/user.h"

enum { MAPS_BYTES = 1 << 20 };

struct lock proc_lock;
static char maps[MAPS_BYTES] GUARDED_BY(proc_lock); /* as the kernel has them */

static void put_place(struct text *text, unsigned long place)
{
    for (unsigned long digit = 1ul << 28; digit > place && digit > 1; digit >>= 4)
        put(text, "0");
    put_number(text, place, 16);
}

static void put_mapping(struct text *text, unsigned long from, unsigned long to, const char *protection)
{
    put_place(text, from);
    put(text, "-");
    put_place(text, to);
    put(text, " ");
    put(text, protection);
    put(text, to == process.stack_high ? " 00000000 00:00 0 [stack]\n" : " 00000000 00:00 0\n");
}

/* All memory is the program's own and has no name; that an image gave it in pieces is not to be seen.  (The C library
 * finds the size of the first thread's stack in here.) */
static void make_maps(struct text *text)
{
    char protection[5] = "";
    unsigned long from = 0, to = 0;
    long size = 0, got;
    lock(&proc_lock);
    while (size < (long)sizeof maps - 1 &&
           (got = SYSTEM(__NR_pread64, MAPS_FD, maps + size, sizeof maps - 1 - (size_t)size, size)) > 0)
        size += got;
    maps[size] = 0;
    for (const char *at = maps; *at;) {
        unsigned long start = read_number(&at, 16), end = (at++, read_number(&at, 16));
        if (start >= THREAD_PLACE || strlen(at) < 5)
            break;
        at++;
        if (start != to || memcmp(at, protection, 4) || protection[3] == 's') {
            if (to)
                put_mapping(text, from, to, protection);
            from = start;
            memcpy(protection, at, 4);
        }
        to = end;
        while (*at && *at++ != '\n')
            ;
    }
    if (to)
        put_mapping(text, from, to, protection);
    unlock(&proc_lock);
}

enum { KIB = 1024 };

static void put_field(struct text *text, int64_t value)
{
    put(text, " ");
    put_signed(text, value);
}

static void make_stat(struct text *text, const struct facts *of, const struct thread *thread)
{
    const char state[] = {' ', of->state, 0};
    put_signed(text, thread ? thread->virtual_id : of->told.virtual_pid);
    put(text, " (");
    put(text, thread ? thread->name : of->told.name);
    put(text, ")");
    put(text, state);
    const int32_t who[] = {of->told.parent, of->told.group, of->told.session, of->told.terminal, of->told.foreground};
    for (size_t i = 0; i < COUNT(who); i++)
        put_field(text, who[i]);
    put(text, " 4194304");
    for (int i = FIELD_MINOR_FAULTS; i <= FIELD_THREADS; i++)
        put_field(text, of->fields[i]);
    put_field(text, 0);
    put_field(text, of->told.began);
    put_field(text, of->fields[FIELD_SIZE]);
    put_field(text, of->fields[FIELD_RESIDENT]);
    put(text, " 18446744073709551615 1 1 ");
    put_number(text, of->own ? process.stack_high : 0, 10);
    put(text, " 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0");
    const uint64_t words[] = {process.arguments_at, process.arguments_end, process.environment_at, process.environment_end};
    for (size_t i = 0; i < COUNT(words); i++)
        put(text, " "), put_number(text, of->own ? words[i] : 0, 10);
    put(text, " 0\n");
}

static void put_line(struct text *text, const char *name, int64_t value, const char *unit)
{
    put(text, name);
    put(text, ":\t");
    put_signed(text, value);
    put(text, unit);
    put(text, "\n");
}

static void put_ids(struct text *text, const char *name, uint32_t real, uint32_t effective)
{
    put(text, name);
    for (int i = 0; i < 4; i++)
        put(text, "\t"), put_number(text, i ? effective : real, 10);
    put(text, "\n");
}

static const char *state_in_words(char state)
{
    return state == 'R'   ? "R (running)"
           : state == 'T' ? "T (stopped)"
           : state == 'D' ? "D (disk sleep)"
           : state == 'Z' ? "Z (zombie)"
                          : "S (sleeping)";
}

static void make_status(struct text *text, const struct facts *of, const struct thread *thread)
{
    const struct member_told *told = &of->told;
    put(text, "Name:\t");
    put(text, thread ? thread->name : told->name);
    put(text, "\nUmask:\t0022\nState:\t");
    put(text, state_in_words(of->state));
    put(text, "\n");
    put_line(text, "Tgid", told->virtual_pid, "");
    put_line(text, "Ngid", 0, "");
    put_line(text, "Pid", thread ? thread->virtual_id : told->virtual_pid, "");
    put_line(text, "PPid", told->parent, "");
    put_line(text, "TracerPid", 0, "");
    put_ids(text, "Uid:", of->own ? process.start.uid : told->uid, of->own ? process.start.euid : told->uid);
    put_ids(text, "Gid:", of->own ? process.start.gid : told->gid, of->own ? process.start.egid : told->gid);
    put(text, "FDSize:\t256\nGroups:\t");
    for (uint32_t i = 0; i < process.start.group_count && i < START_GROUPS; i++)
        put_number(text, process.start.groups[i], 10), put(text, " ");
    put(text, "\n");
    put_line(text, "NStgid", told->virtual_pid, "");
    put_line(text, "NSpid", thread ? thread->virtual_id : told->virtual_pid, "");
    put_line(text, "NSpgid", told->group, "");
    put_line(text, "NSsid", told->session, "");
    const int64_t size = of->fields[FIELD_SIZE] / KIB, resident = of->fields[FIELD_RESIDENT] * (PAGE / KIB);
    put_line(text, "VmPeak", size, " kB");
    put_line(text, "VmSize", size, " kB");
    put_line(text, "VmLck", 0, " kB");
    put_line(text, "VmHWM", resident, " kB");
    put_line(text, "VmRSS", resident, " kB");
    put_line(text, "VmData", size, " kB");
    put_line(text, "VmSwap", 0, " kB");
    put_line(text, "Threads", of->fields[FIELD_THREADS], "");
    put(text, "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

static void make_statm(struct text *text, const struct facts *of)
{
    const int64_t size = of->fields[FIELD_SIZE] / PAGE, resident = of->fields[FIELD_RESIDENT];
    const int64_t pages[] = {size, resident, resident / 4, 1, 0, size, 0};
    for (size_t i = 0; i < COUNT(pages); i++) {
        put_signed(text, pages[i]);
        put(text, i + 1 < COUNT(pages) ? " " : "\n");
    }
}

/* The words of a list on the program's stack, zeros included. */
static void put_memory(struct text *text, unsigned long from, unsigned long to)
{
    size_t size = to - from;
    if (size > text->room - text->used)
        size = text->room - text->used;
    if (!copy_user(text->at + text->used, (void *)from, size))
        text->used += size;
}

static void make_arguments(struct text *text, const struct facts *of)
{
    size_t size = of->told.argument_bytes;
    if (of->own)
        put_memory(text, process.arguments_at, process.arguments_end);
    else if (size <= text->room - text->used)
        memcpy(text->at, of->words + of->told.path_bytes, size), text->used += size;
}

enum { OF_ALL, OF_OWN /* another member's is refused */ };

static const struct {
    char listed[32]; /* 'f' and the name; '-': it is elsewhere */
    uint8_t whose;
    const char *always; /* NULL: it is made */
} known[] = {
    {"fcgroup", OF_ALL, "0::/\n"}, {"fcmdline", OF_ALL, NULL}, {"fcomm", OF_ALL, NULL}, {"fenviron", OF_OWN, NULL},
    {"flimits", OF_OWN, NULL}, {"floginuid", OF_ALL, "4294967295"}, {"fmaps", OF_OWN, NULL}, {"fmountinfo", OF_ALL, ""}, {"fmounts", OF_ALL, ""},
    {"foom_adj", OF_ALL, "0\n"}, {"foom_score", OF_ALL, "0\n"}, {"foom_score_adj", OF_ALL, "0\n"},
    {"fsessionid", OF_ALL, "4294967295"}, {"fsmaps", OF_OWN, ""}, {"fstat", OF_ALL, NULL}, {"fstatm", OF_ALL, NULL},
    {"fstatus", OF_ALL, NULL}, {"fwchan", OF_ALL, "0"}, {"-" PTRACE_SCOPE, OF_ALL, "3\n"},
};

static int find_known(const char *name)
{
    for (size_t i = 0; i < COUNT(known); i++)
        if (!strcmp(known[i].listed + 1, name))
            return (int)i;
    return -1;
}

bool is_made_text(const char *name)
{
    return find_known(name) >= 0;
}

/* Whether no other member may read it. */
bool is_own_alone(const char *name)
{
    const int which = find_known(name);
    return which >= 0 && known[which].whose == OF_OWN;
}

/* The names of all, each with an f in front and a zero behind it. */
void put_text_names(struct text *text)
{
    for (size_t i = 0; i < COUNT(known); i++) {
        if (known[i].listed[0] == '-')
            continue;
        put(text, known[i].listed);
        text->used++;
    }
}

/* THREAD: a thread of this process's, NULL: the process. False: there is no such file. */
bool make_text(const char *name, const struct facts *of, const struct thread *thread, struct text *text)
{
    const int which = find_known(name);
    if (which < 0)
        return false;
    if (known[which].always) {
        put(text, known[which].always);
    } else if (!strcmp(name, "limits")) {
        put_limits(text);
    } else if (!strcmp(name, "maps")) {
        make_maps(text);
    } else if (!strcmp(name, "stat")) {
        make_stat(text, of, thread);
    } else if (!strcmp(name, "status")) {
        make_status(text, of, thread);
    } else if (!strcmp(name, "statm")) {
        make_statm(text, of);
    } else if (!strcmp(name, "cmdline")) {
        make_arguments(text, of);
    } else if (!strcmp(name, "environ")) {
        put_memory(text, process.environment_at, process.environment_end);
    } else {
        put(text, thread ? thread->name : of->told.name);
        put(text, "\n");
    }
    return true;
}
