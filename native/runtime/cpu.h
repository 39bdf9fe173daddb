/* Which level of the architecture a program may have built upon: see cpu.c. */
#ifndef RUNTIME_CPU_H
#define RUNTIME_CPU_H

int cpu_level(void);
unsigned cpu_state(void);

#endif
