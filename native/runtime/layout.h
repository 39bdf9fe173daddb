/* The address space.  Everything of the program's and of the runtime's lies below KERNEL_PLACES. */
#ifndef RUNTIME_LAYOUT_H
#define RUNTIME_LAYOUT_H

#define LOWEST_PLACE 0x10000ul
#define ARENA_START 0x400000000000ul
#define ARENA_END 0x500000000000ul
#define BREAK_START 0x500000000000ul
#define BREAK_END 0x600000000000ul
#define STACK_PLACE 0x600000000000ul
#define THREAD_PLACE 0x6ffe00000000ul
#define RUNTIME_PLACE 0x6fff00000000ul
#define KERNEL_PLACES 0x700000000000ul
#define KERNEL_PLACES_END 0x7ffffffff000ul /* no program has memory beyond */
#define PAGE 4096ul

#define SLOT_BYTES 0x40000ul
#define MAX_THREADS 1024

extern char runtime_text_start[], runtime_text_end[], runtime_data_start[], runtime_data_end[];

static inline unsigned long page_up(unsigned long value)
{
    return (value + PAGE - 1) & ~(PAGE - 1);
}

static inline unsigned long page_down(unsigned long value)
{
    return value & ~(PAGE - 1);
}

#endif
