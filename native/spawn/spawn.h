/* Starts a program from a process that has threads and much memory.
 *
 * As posix_spawn(3) it copies nothing of the process; beyond that the new process can be the first of a pid namespace,
 * it begins with every signal blocked (a process that becomes a job's sets them anyway, and none is lost before), and
 * descriptors are handed on without a moment in which another start could hand them on as well.
 */
#ifndef CONDOR_SPAWN_H
#define CONDOR_SPAWN_H

#include <stddef.h>

/* TEXT: SIZE bytes, WORDS words and then VARIABLES variables, each ended by a zero; the first word is the program.
 * STANDARD: its standard input, output, error; KEPT: KEPT_COUNT descriptors that it gets under their own numbers.
 * Returns its pid, or the negative errno with which it could not be started. */
int spawn_program(const char *text, size_t size, int words, int variables, const int *standard, const int *kept,
                  int kept_count, int own_pids);

#endif
