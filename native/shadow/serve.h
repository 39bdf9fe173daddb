/* What the servers of single calls share. */
#ifndef CONDOR_SERVE_H
#define CONDOR_SERVE_H

#include "session.h"

#include "calls.h"

#define ARGUMENT(k) (w->head.arguments[k])

typedef long server(struct work *w);
#define DECLARE(name) server serve_##name;
CALLS_SERVED_THERE(DECLARE)
#undef DECLARE

/* serve.c */
long result_of(long result); /* of a C library's call: -errno instead of -1 */
const char *take_path(struct work *w, size_t *at);
void *take_input(struct work *w, size_t *at, size_t size);
long install(struct session *s, int real, int flags, bool closes_on_exec, uint8_t kind);
long would_wait(struct work *w, const struct file *file, short events);

/* open_calls.c */
long serve_facts(struct work *w);

/* own_files.c */
long serve_reopen(struct work *w);
long serve_file_info(struct work *w);

/* file_calls.c */
enum { SHOWN_LARGE = 0100000 /* O_LARGEFILE, which the kernel adds to all that is opened */ };
long shown_flags(const struct file *file);

/* ready_signals.c */
long ready_tell(struct session *s, struct file *file, bool wanted, bool by_request);
long ready_own(struct session *s, struct file *file, int64_t owner);
long serve_owner(struct work *w, struct file *file, int command);

/* records.c */
long serve_lock(struct work *w, struct file *file, int command);

/* pipe_calls.c */
uint32_t new_pair_number(void);

/* signal_files.c */
bool signals_wait(const struct file *file, uint64_t waiting);
void signals_show(struct session *s, uint64_t waiting);
long serve_signals(struct work *w);

/* plan.c */
long serve_take(struct work *w);
long serve_plan_end(struct work *w);

/* members.c */
long serve_fork(struct work *w);

/* family.c */
long serve_gather(struct work *w);
long serve_parked(struct work *w);
long serve_shared_memory(struct work *w);
long serve_part(struct work *w);
long serve_part_written(struct work *w);
long serve_real_pid(struct work *w);
long serve_begin(struct work *w);

/* groups.c */
long serve_group(struct work *w);

/* process_files.c */
long serve_process(struct work *w);

/* member_facts.c */
long serve_program(struct work *w);
long serve_members(struct work *w);
long serve_listing(struct work *w);

/* orphans.c */
long serve_orphans(struct work *w);

/* terminal_signals.c */
long serve_terminal_signals(struct work *w);

/* mapped_elsewhere.c */
/* Whether others have a file mapped or locked that the family is about to map: the host is told.  Else, or if it LOOKS not,
 * *MARK is a descriptor that marks it as mapped by this family, -1: it cannot be marked. */
struct stat;
bool mapped_elsewhere(struct session *s, const struct file *file, const struct stat *st, bool looks, int *mark);

/* mapped.c */
long serve_share(struct work *w);

/* waits.c */
long serve_poll_all(struct work *w);
long serve_epoll_set(struct work *w);

/* image.c */
long serve_image_begin(struct work *w);
long serve_image_end(struct work *w);

#endif
