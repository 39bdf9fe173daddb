/* Contents that execute machines keep: by which digest home tells of a file, in place of its bytes.
 *
 * A digest is told of what the file has at that moment.  It is known by the file's device, number, size and times, and
 * was computed from it in a thread of its own: no program waits for that.  Times tell of a change by a call, but may not
 * tell of one through a mapping; so it is done only for files below folders that the task names, where programs and
 * libraries lie, which are replaced and not changed.  Only files that every user may read have one, and none that was
 * changed a moment ago: another change in the same tick of the clock would not show.
 */
#include "session.h"

#include "sha256.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PLACES = 2048, WAYS = 4, MOST_AWAITED = 512, READ_BYTES = 256 << 10, LEAST_AGE_S = 2, MOST_LENGTH = 256 << 20 };

struct sum {
    struct stat of;
    int64_t from, length; /* of the piece that it is of; 0: the place is free */
    uint64_t used;
    uint8_t digest[LIBRARY_DIGEST];
};

static pthread_mutex_t sums_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sum *sums GUARDED_BY(sums_lock); /* PLACES of them, as soon as there is one */
static uint64_t sums_clock GUARDED_BY(sums_lock);
static struct awaited {
    int real;
    int64_t from, length;
} awaited[MOST_AWAITED] GUARDED_BY(sums_lock);
static size_t awaited_count GUARDED_BY(sums_lock);
static bool is_summing GUARDED_BY(sums_lock);

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_as_it_was(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size && a->st_mode == b->st_mode &&
           a->st_uid == b->st_uid && same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}

static bool has_rested(const struct stat *st)
{
    time_t now = time(NULL);
    return now - st->st_mtim.tv_sec > LEAST_AGE_S && now - st->st_ctim.tv_sec > LEAST_AGE_S;
}

/* Whether the file lies below one of FOLDERS, between which there are colons. */
static bool lies_below(int real, const char *folders)
{
    char link[64], name[PATH_LIMIT];
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length <= 0 || length == sizeof name - 1)
        return false;
    name[length] = 0;
    for (size_t size; *folders; folders += size + (folders[size] == ':')) {
        size = strcspn(folders, ":");
        if (size && strncmp(name, folders, size) == 0 && (name[size] == '/' || folders[size - 1] == '/'))
            return true;
    }
    return false;
}

/* The set that a sum of that file may be in. */
static struct sum *set_of(const struct stat *st, int64_t from, int64_t length) REQUIRES(sums_lock);
static struct sum *set_of(const struct stat *st, int64_t from, int64_t length)
{
    const uint64_t spread = 0x9e3779b97f4a7c15ull, piece = ((uint64_t)from * spread ^ (uint64_t)length) * spread;
    const uint64_t mixed = ((st->st_ino ^ piece) * spread ^ st->st_dev) * spread;
    return sums + (mixed >> 32) % (PLACES / WAYS) * WAYS;
}

static struct sum *find_sum(const struct stat *st, int64_t from, int64_t length) REQUIRES(sums_lock);
static struct sum *find_sum(const struct stat *st, int64_t from, int64_t length)
{
    struct sum *set = sums ? set_of(st, from, length) : NULL;
    for (int i = 0; i < WAYS && set; i++)
        if (set[i].from == from && set[i].length == length && is_as_it_was(&set[i].of, st))
            return &set[i];
    return NULL;
}

/* Others may have waited for the same. */
static bool is_known(const struct stat *st, int64_t from, int64_t length)
{
    pthread_mutex_lock(&sums_lock);
    bool known = find_sum(st, from, length);
    pthread_mutex_unlock(&sums_lock);
    return known;
}

static void keep_sum(const struct stat *st, const struct awaited *of, const uint8_t digest[LIBRARY_DIGEST])
    REQUIRES(sums_lock);
static void keep_sum(const struct stat *st, const struct awaited *of, const uint8_t digest[LIBRARY_DIGEST])
{
    if (!sums && !(sums = calloc(PLACES, sizeof *sums)))
        return;
    struct sum *set = set_of(st, of->from, of->length), *place = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].from == of->from && set[i].length == of->length && set[i].of.st_ino == st->st_ino && set[i].of.st_dev == st->st_dev) {
            place = &set[i];
            break;
        }
        if (set[i].used < place->used)
            place = &set[i];
    }
    *place = (struct sum){.of = *st, .from = of->from, .length = of->length, .used = ++sums_clock};
    memcpy(place->digest, digest, LIBRARY_DIGEST);
}

static bool sum_up(const struct awaited *one, uint8_t *room, uint8_t digest[LIBRARY_DIGEST])
{
    const int64_t end = one->from + one->length;
    struct sha256 sum;
    sha256_begin(&sum);
    for (int64_t at = one->from; at < end;) {
        ssize_t got = pread(one->real, room, end - at < READ_BYTES ? (size_t)(end - at) : READ_BYTES, at);
        if (got <= 0)
            return false;
        sha256_add(&sum, room, (size_t)got);
        at += got;
    }
    sha256_end(&sum, digest);
    return true;
}

/* Until nothing is waited for. */
static void *sum_all(void *unused)
{
    uint8_t *room = malloc(READ_BYTES), digest[LIBRARY_DIGEST];
    (void)unused;
    block_signals();
    for (;;) {
        struct stat before, after;
        pthread_mutex_lock(&sums_lock);
        if (!awaited_count)
            is_summing = false;
        bool over = !awaited_count;
        struct awaited one = over ? (struct awaited){0} : awaited[0];
        if (!over)
            memmove(awaited, awaited + 1, --awaited_count * sizeof *awaited);
        pthread_mutex_unlock(&sums_lock);
        if (over)
            break;
        bool good = room && fstat(one.real, &before) == 0 && has_rested(&before) && one.from + one.length <= before.st_size &&
                    !is_known(&before, one.from, one.length) && sum_up(&one, room, digest) && fstat(one.real, &after) == 0 &&
                    is_as_it_was(&before, &after);
        close(one.real);
        if (!good)
            continue;
        pthread_mutex_lock(&sums_lock);
        keep_sum(&after, &one, digest);
        pthread_mutex_unlock(&sums_lock);
    }
    free(room);
    return NULL;
}

static void begin_summing(void) REQUIRES(sums_lock);
static void begin_summing(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    if (is_summing)
        return;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    is_summing = pthread_create(&thread, &attributes, sum_all, NULL) == 0;
    pthread_attr_destroy(&attributes);
}

/* Whether the digest of LENGTH bytes of the file, which ST was just told of, is known and may be told. If it may and is not
 * known, it is computed for the next time. */
static bool find_digest(const struct session *s, int real, const struct stat *st, int64_t from, int64_t length,
                    uint8_t digest[LIBRARY_DIGEST])
{
    const char *folders = s->root->libraries;
    if (!s->root->keeps_library || !folders || s->root->job_root || length < LEAST_KEPT || length > MOST_LENGTH ||
        from < 0 || from > st->st_size - length || !S_ISREG(st->st_mode) || !(st->st_mode & S_IROTH) || !has_rested(st) ||
        !lies_below(real, folders))
        return false;
    pthread_mutex_lock(&sums_lock);
    struct sum *known = find_sum(st, from, length);
    if (known) {
        known->used = ++sums_clock;
        memcpy(digest, known->digest, LIBRARY_DIGEST);
    }
    int again = known || awaited_count == MOST_AWAITED ? -1 : fcntl(real, F_DUPFD_CLOEXEC, 3);
    if (again >= 0) {
        awaited[awaited_count++] = (struct awaited){again, from, length};
        begin_summing();
        if (!is_summing)
            close(awaited[--awaited_count].real);
    }
    pthread_mutex_unlock(&sums_lock);
    return known;
}

static int compare(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* What the other side has: the first bytes of each digest. */
void library_learn(struct session *s, const uint8_t *from, size_t size)
{
    size_t count = size / sizeof *s->library;
    s->keeps_library = true;
    if (!count || count > MOST_CONTENTS || s->library || !(s->library = malloc(count * sizeof *s->library)))
        return;
    memcpy(s->library, from, count * sizeof *s->library);
    qsort(s->library, count, sizeof *s->library, compare);
    s->library_count = count;
}

static bool other_has(const struct session *s, const uint8_t digest[LIBRARY_DIGEST])
{
    const struct session *root = s->root;
    uint32_t first;
    memcpy(&first, digest, sizeof first);
    return root->library && bsearch(&first, root->library, root->library_count, sizeof first, compare);
}

/* Puts the digest in front of a content that W is to send from a file; and the content is not sent, if the other side has it. */
void library_put(struct work *w, const struct stat *st)
{
    struct session *s = w->session;
    uint8_t digest[LIBRARY_DIGEST], *to;
    if (!find_digest(s, w->bulk.real, st, w->bulk.offset, (int64_t)w->bulk.size, digest) ||
        !(to = out_room(w, sizeof digest)))
        return;
    memcpy(to, digest, sizeof digest);
    w->hints |= HINT_DIGEST;
    if (other_has(s, digest)) {
        s->statistics.files_kept_there++;
        s->statistics.bytes_kept_there += w->bulk.size;
        w->bulk.size = 0;
    }
}
