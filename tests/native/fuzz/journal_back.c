/* Coverage-guided fuzzing of going back by an undo journal that someone else has written.
 *
 * One input is what follows the journal's header; its size says whether the program is confined to a directory, and
 * whether the journal is the one before the last. */
#include "confined.h"

#include "../../../native/shadow/checkpoint/journal.h"

#include <signal.h>

enum { GENERATION = 7 };

static char below[PATH_LIMIT];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    shut_in();
    sigset_t limits; /* as in a shadow host: a file that would become too long is an errno */
    sigemptyset(&limits);
    sigaddset(&limits, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &limits, NULL);
    mkdir("below", 0700);
    if (!realpath("below", below))
        must(-1, "a directory");
    return 0;
}

static void put_journal(const char *directory, uint64_t generation, const uint8_t *data, size_t size)
{
    const struct header head = {JOURNAL_MAGIC, 1, generation};
    char name[PATH_LIMIT];
    snprintf(name, sizeof name, "%s/journal", directory);
    mkdir(directory, 0700);
    unlink(name);
    int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return; /* an earlier journal has put something else there */
    if (write(file, &head, sizeof head) < 0 || write(file, data, size) < 0)
        give_up("a journal cannot be written", errno);
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct session session;
    bool is_previous = size % 4 >= 2;
    memset(&session, 0, sizeof session);
    session.root = &session;
    session.image = (char *)"/image";
    session.job_root = size % 2 ? below : NULL;
    session.task.journal = 1;
    mkdir("below", 0700);
    put_journal("/image.undo", is_previous ? GENERATION + 1 : GENERATION, data, size);
    if (is_previous)
        put_journal("/image.undo.1", GENERATION, data, size);
    journal_apply(&session, GENERATION);
    journal_close(&session, true);
    return 0;
}
