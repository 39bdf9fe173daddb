/* What a program will ask when it begins: what it asked the last time.
 *
 * The first calls of a program are the same each time: hundreds of names looked up, libraries opened and read.
 * A host remembers them for each program, and answers them anew right behind the next greeting, before they are
 * asked.  Nothing old is told: what is remembered are the questions.
 */
#include "serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLANS = 64, MOST_CONTENT = 16 << 20, MOST_LISTING = 256 << 10 };
#define LEARNING_NS 5000000000ll

struct question {
    struct request head;
    char *path;
    int64_t extent; /* of an opened file: how far it was read; -1: a directory that was listed */
};

static pthread_mutex_t plans_lock = PTHREAD_MUTEX_INITIALIZER;
static struct plan {
    char *program;
    struct question *questions;
    size_t count;
    uint64_t used;
    int references; /* sessions that learn */
} plans[PLANS] GUARDED_BY(plans_lock);
static uint64_t plans_clock GUARDED_BY(plans_lock);

static void clear(struct plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        free(plan->questions[i].path);
    free(plan->questions);
    plan->questions = NULL;
    plan->count = 0;
}

/* The plan of PROGRAM, or a new one in the place of the one that was not used for longest. */
static struct plan *plan_of(const char *program) REQUIRES(plans_lock);
static struct plan *plan_of(const char *program)
{
    struct plan *oldest = NULL;
    for (int i = 0; i < PLANS; i++) {
        if (plans[i].program && strcmp(plans[i].program, program) == 0)
            return &plans[i];
        if (!plans[i].references && (!oldest || plans[i].used < oldest->used))
            oldest = &plans[i];
    }
    if (oldest) {
        clear(oldest);
        free(oldest->program);
        oldest->program = strdup(program);
    }
    return oldest && oldest->program ? oldest : NULL;
}

/* ---- learning */

static bool is_question(const struct request *head)
{
    bool standard = head->arguments[0] >= 0 && head->arguments[0] <= 2;
    switch (head->call) {
    case __NR_ioctl: return standard && head->arguments[1] == TCGETS;
    case __NR_fcntl: return standard && (head->arguments[1] == F_GETFD || head->arguments[1] == F_GETFL);
    case __NR_openat: return (head->arguments[2] & (O_ACCMODE | O_CREAT | O_TRUNC | O_PATH)) == O_RDONLY;
    case __NR_newfstatat: case __NR_statx: case __NR_readlinkat: case __NR_faccessat: case __NR_faccessat2:
    case __NR_getcwd:
        return true;
    default: return false;
    }
}

static bool is_about_path(uint16_t call)
{
    return call != __NR_ioctl && call != __NR_fcntl && call != __NR_getcwd;
}

/* Whether a program that asks this still only looks around. */
static bool still_beginning(const struct request *head)
{
    switch (head->call) {
    case __NR_read: case __NR_pread64: case __NR_lseek: case __NR_close: case __NR_getdents64: case __NR_ioctl:
    case __NR_fcntl: case __NR_statfs: case __NR_fstatfs: case __NR_uname:
    case __NR_epoll_create1: case OP_FACTS: case OP_PATH_OF: case OP_TEXT: case OP_PROGRAM: case OP_HELLO: case OP_TAKE: return true;
    default: return is_question(head);
    }
}

static void add(struct session *s, const struct work *w) REQUIRES(plans_lock);
static void add(struct session *s, const struct work *w)
{
    struct plan *plan = s->plan;
    bool about_path = is_about_path(w->head.call);
    const char *path = about_path ? (const char *)w->payload : "";
    size_t length = about_path ? strnlen(path, w->head.size) : 0;
    bool standard = length == 0 && w->head.arguments[0] >= 0 && w->head.arguments[0] <= 2;
    if ((about_path && length == w->head.size) || plan->count >= MOST_FORESEEN ||
        (about_path && w->head.arguments[0] != AT_FDCWD && path[0] != '/' && !standard))
        return;
    if (plan->count % 256 == 0) {
        struct question *more = realloc(plan->questions, (plan->count + 256) * sizeof *more);
        if (!more)
            return;
        plan->questions = more;
    }
    struct question *q = &plan->questions[plan->count];
    *q = (struct question){.head = w->head, .path = strdup(path), .extent = FIRST_BYTES};
    if (q->path)
        plan->count++;
}

/* How far a file of the plan is read: the last question that opened it says so. */
static void note_extent(struct session *s, const struct request *head) REQUIRES(plans_lock);
static void note_extent(struct session *s, const struct request *head)
{
    struct file *file = file_of(s, head->arguments[0]);
    if (!file || !file->question || file->question > s->plan->count)
        return;
    struct question *q = &s->plan->questions[file->question - 1];
    int64_t size = head->arguments[2], at = head->arguments[3], end = -1;
    if (head->call == __NR_pread64) {
        if (size < 0 || size > MAX_READ || at < 0 || at > INT64_MAX - MAX_READ)
            return;
        end = at + size;
    }
    if (q->head.call == __NR_openat && (end < 0 || (q->extent >= 0 && end > q->extent)))
        q->extent = end;
}

/* After each request of a program that begins. */
void plan_learn(struct work *w, long result)
{
    struct session *s = w->session;
    pthread_mutex_lock(&plans_lock);
    if (!still_beginning(&w->head) || now_ns() > s->plan_until_ns) {
        s->plan->references--;
        s->plan = NULL;
    } else if (is_question(&w->head) && result != PARKED) {
        add(s, w);
        struct file *file = w->head.call == __NR_openat ? file_of(s, result) : NULL;
        if (file)
            file->question = (uint32_t)s->plan->count;
    } else if (w->head.call == __NR_pread64 || w->head.call == __NR_getdents64) {
        note_extent(s, &w->head);
    }
    pthread_mutex_unlock(&plans_lock);
}

void plan_forget(struct session *s)
{
    pthread_mutex_lock(&plans_lock);
    if (s->plan)
        s->plan->references--;
    s->plan = NULL;
    pthread_mutex_unlock(&plans_lock);
    for (size_t i = 0; i < s->ticket_count; i++)
        if (s->tickets[i])
            file_drop(s->tickets[i]);
    free(s->tickets);
    s->tickets = NULL;
    s->ticket_count = 0;
}

/* ---- foretelling */

static size_t add_listing(struct work *w, int real)
{
    struct stat st;
    uint8_t *to = fstat(real, &st) < 0 ? NULL : out_room(w, sizeof st);
    if (!to)
        return 0;
    memcpy(to, &st, sizeof st);
    to = out_room(w, MOST_LISTING);
    size_t used = 0;
    long got = 0;
    while (to && used < MOST_LISTING && (got = syscall(SYS_getdents64, real, to + used, MOST_LISTING - used)) > 0)
        used += (size_t)got;
    lseek(real, 0, SEEK_SET);
    if (to)
        w->out_used -= MOST_LISTING - (got == 0 ? used : 0);
    return got == 0 && to ? used : 0;
}

/* The file just opened gets a ticket instead of its descriptor, and its content goes along. */
static int64_t issue_ticket(struct work *w, const struct question *q, uint32_t number, long fd)
{
    struct session *s = w->session;
    struct file *file = file_of(s, fd);
    struct stat st;
    file->question = s->plan ? number : 0;
    s->entries[fd] = (struct entry){0};
    s->tickets[s->ticket_count] = file;
    if (q->extent < 0) {
        if (add_listing(w, file->real))
            w->hints |= HINT_LISTING;
    } else if (file->steady && q->extent && fstat(file->real, &st) == 0 && st.st_size) {
        size_t size = (size_t)(st.st_size < q->extent ? st.st_size : q->extent);
        w->bulk.real = file->real;
        w->bulk.size = size < MOST_CONTENT ? size : MOST_CONTENT;
        if (w->hints & HINT_STEADY)
            library_put(w, &st);
    }
    return (int64_t)s->ticket_count++;
}

static bool foretell(struct session *s, const struct question *q, uint32_t number, size_t *told)
{
    struct work w = {.session = s, .head = q->head, .payload = (uint8_t *)q->path, .passed_fd = -1, .until_ns = -1,
                     .retry_ns = -1};
    struct foreseen head = {.call = q->head.call, .path_size = (uint32_t)strlen(q->path) + 1, .ticket = -1};
    bool opens = q->head.call == __NR_openat;
    memcpy(head.arguments, q->head.arguments, sizeof head.arguments);
    w.head.size = is_about_path(q->head.call) ? head.path_size : 0;
    w.head.id = ID_PLAN;
    if (opens)
        w.head.arguments[4] = WANT_FACTS;
    long result = serve(&w);
    if (result == PARKED)
        return true;
    if (result < 0)
        w.out_used = 0;
    if (opens && result >= 0)
        head.ticket = issue_ticket(&w, q, number, result);
    *told += w.out_used + w.bulk.size;
    return send_foreseen(&w, result, &head, q->path);
}

/* Behind the greeting of a fresh program. */
void plan_begin(struct session *s)
{
    static const struct foreseen last = {.call = 0, .ticket = -1};
    struct question *questions = NULL;
    size_t count = 0, told = 0;
    pthread_mutex_lock(&plans_lock);
    struct plan *plan = plan_of(s->strings);
    if (plan) {
        plan->used = ++plans_clock;
        if (!plan->references && (s->plan = plan))
            plan->references++;
        if (plan->count && (questions = calloc(plan->count, sizeof *questions))) {
            for (; count < plan->count; count++) {
                questions[count] = plan->questions[count];
                questions[count].path = strdup(plan->questions[count].path);
            }
        }
    }
    pthread_mutex_unlock(&plans_lock);
    s->plan_until_ns = now_ns() + LEARNING_NS;
    s->tickets = calloc(count + 1, sizeof *s->tickets);
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        if (good && s->tickets && questions[i].path && told < MOST_FORESEEN_BYTES - MOST_CONTENT - MOST_LISTING)
            good = foretell(s, &questions[i], (uint32_t)i + 1, &told);
        free(questions[i].path);
    }
    free(questions);
    struct work end = {.session = s, .passed_fd = -1};
    if (!good || !send_foreseen(&end, (long)count, &last, NULL))
        s->over = true;
}

long serve_take(struct work *w)
{
    struct session *s = w->session;
    int64_t ticket = ARGUMENT(0), fd = ARGUMENT(1);
    if (ticket < 0 || ticket >= (int64_t)s->ticket_count || !s->tickets[ticket] || fd < 0 || fd >= MAX_FILES ||
        s->entries[fd].file) {
        broken(s, "a foreseen file was taken that is not there, or under a number that is");
        return -EBADF;
    }
    s->entries[fd] = (struct entry){s->tickets[ticket], ARGUMENT(2) & O_CLOEXEC};
    s->tickets[ticket] = NULL;
    s->statistics.files_opened++;
    return 0;
}

/* A plan that was mostly wrong is made anew the next time. */
long serve_plan_end(struct work *w)
{
    struct session *s = w->session;
    pthread_mutex_lock(&plans_lock);
    if (s->plan && s->ticket_count && ARGUMENT(0) >= 0 && (size_t)ARGUMENT(0) * 2 < s->plan->count)
        clear(s->plan);
    pthread_mutex_unlock(&plans_lock);
    plan_forget(s);
    return 0;
}
