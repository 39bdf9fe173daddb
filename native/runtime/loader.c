/* Loads a program: what execve does in the kernel, done with files that are at home. */
#include "loader.h"

#include <linux/auxvec.h>
#include <linux/elf.h>

#include "runtime/remote/read_ahead.h"
#include "runtime/memory/memory.h"
#include "runtime/process/process.h"
#include "runtime/proc/facts.h"
#include "runtime/remote/remote.h"
#include "text.h"
#include "trap.h"
#include "user.h"

enum {
    SCRIPT_LEVELS = 4, SCRIPT_LINE = 256, MOST_HEADERS = 128,
    SMALLEST_STACK = 1 << 17, DEFAULT_STACK = 8 << 20, STACK_KEPT = 1 << 16 /* of it, beside words */,
    CLOCK_TICKS = 100, RANDOM_BYTES = 16,
};
#define LARGEST_STACK (1ul << 32)
#define HUGE_PAGE (2ul << 20) /* position-independent programs begin at a multiple */
#define AT_MINIMAL_STACK 51   /* AT_MINSIGSTKSZ */

unsigned long kernel_auxiliary[AUXILIARY_WORDS][2] GUARDED_BY(one_thread);

struct image {
    unsigned long base, entry, headers, header_count, low, high;
    char interpreter[PATH_LIMIT];
};

static int protection(uint32_t flags)
{
    return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

static long load_segment(struct thread *self, int fd, const struct elf64_phdr *p, unsigned long base)
{
    unsigned long from = page_down(base + p->p_vaddr), to = page_up(base + p->p_vaddr + p->p_memsz);
    unsigned long before = base + p->p_vaddr - from;
    if (to <= from)
        return 0;
    long at = map_anonymous(from, to - from, PROT_READ | PROT_WRITE, MAP_FIXED);
    if (at < 0)
        return at;
    if (p->p_filesz) {
        long got = read_home(self, fd, (void *)from, before + p->p_filesz, (int64_t)(p->p_offset - before));
        if (got < (long)(before + p->p_filesz))
            return got < 0 ? got : -ENOEXEC;
    }
    SYSTEM(__NR_mprotect, from, to - from, protection(p->p_flags));
    return 0;
}

static long load_segments(struct thread *self, int fd, const struct elf64_hdr *head,
                          const struct elf64_phdr *headers, struct image *image)
{
    image->low = ~0ul;
    image->high = 0;
    for (int i = 0; i < head->e_phnum; i++) {
        const struct elf64_phdr *p = &headers[i];
        if (p->p_type == PT_INTERP) {
            if (p->p_filesz > PATH_LIMIT || p->p_filesz < 2 ||
                read_home(self, fd, image->interpreter, p->p_filesz, (int64_t)p->p_offset) < (long)p->p_filesz)
                return -ENOEXEC;
            image->interpreter[p->p_filesz - 1] = 0;
        }
        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_filesz > p->p_memsz || p->p_vaddr + p->p_memsz < p->p_vaddr)
            return -ENOEXEC;
        if (page_down(p->p_vaddr) < image->low)
            image->low = page_down(p->p_vaddr);
        if (page_up(p->p_vaddr + p->p_memsz) > image->high)
            image->high = page_up(p->p_vaddr + p->p_memsz);
    }
    if (image->low >= image->high)
        return -ENOEXEC;
    image->base = 0;
    if (head->e_type == ET_DYN) { /* one piece first, so that the segments keep their distances */
        long whole = map_anonymous(0, image->high - image->low + HUGE_PAGE, 0, MAP_NORESERVE);
        if (whole < 0)
            return whole;
        unsigned long aligned = ((unsigned long)whole + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
        image->base = aligned - image->low;
    } else if (!is_programs_range(image->low, image->high - image->low)) {
        return -ENOEXEC;
    }
    for (int i = 0; i < head->e_phnum; i++) {
        if (headers[i].p_type != PT_LOAD)
            continue;
        long failed = load_segment(self, fd, &headers[i], image->base);
        if (failed)
            return failed;
        if (headers[i].p_offset <= head->e_phoff &&
            headers[i].p_offset + headers[i].p_filesz >= head->e_phoff + head->e_phnum * sizeof *headers)
            image->headers = image->base + headers[i].p_vaddr + head->e_phoff - headers[i].p_offset;
    }
    image->entry = image->base + head->e_entry;
    image->header_count = head->e_phnum;
    return 0;
}

static long check_header(const struct elf64_hdr *head)
{
    static const unsigned char wanted[6] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB};
    if (memcmp(head->e_ident, wanted, sizeof wanted) || head->e_machine != EM_X86_64 ||
        (head->e_type != ET_EXEC && head->e_type != ET_DYN) || head->e_phentsize != sizeof(struct elf64_phdr) ||
        head->e_phnum == 0 || head->e_phnum > MOST_HEADERS)
        return -ENOEXEC;
    return 0;
}

static long open_for_running(struct thread *self, const char *path)
{
    return open_home(self, NULL, AT_FDCWD, path, O_CLOEXEC, 0);
}

static long load_image(struct thread *self, const char *path, struct image *image)
{
    struct elf64_hdr head;
    struct elf64_phdr headers[MOST_HEADERS];
    long fd = open_for_running(self, path);
    if (fd < 0)
        return fd;
    image->interpreter[0] = 0;
    long result = read_home(self, (int)fd, &head, sizeof head, 0);
    if (result >= 0)
        result = result < (long)sizeof head ? -ENOEXEC : check_header(&head);
    if (!result) {
        size_t bytes = head.e_phnum * sizeof headers[0];
        result = read_home(self, (int)fd, headers, bytes, (int64_t)head.e_phoff);
        result = result < 0 ? result : result < (long)bytes ? -ENOEXEC : 0;
    }
    if (!result)
        result = load_segments(self, (int)fd, &head, headers, image);
    close_home(self, (int)fd);
    return result;
}

/* The program's first stack: strings at the top, then the auxiliary vector and the pointers. */
struct stack {
    unsigned long top;
};

static unsigned long push(struct stack *stack, const void *from, size_t size)
{
    stack->top -= size;
    memcpy((void *)stack->top, from, size);
    return stack->top;
}

static unsigned long kernel_value(unsigned long type) REQUIRES(one_thread);
static unsigned long kernel_value(unsigned long type)
{
    for (size_t i = 0; i < COUNT(kernel_auxiliary) && kernel_auxiliary[i][0]; i++)
        if (kernel_auxiliary[i][0] == type)
            return kernel_auxiliary[i][1];
    return 0;
}

/* Copies the strings of LIST, last one lowest, and their places into POINTERS. */
static unsigned long push_strings(struct stack *stack, char **list, unsigned long *pointers)
{
    unsigned long count = 0;
    while (list[count])
        count++;
    for (unsigned long i = count; i-- > 0;)
        pointers[i] = push(stack, list[i], strlen(list[i]) + 1);
    return count;
}

static unsigned long length_of(char **list, unsigned long *bytes)
{
    unsigned long count = 0;
    for (; list[count]; count++)
        *bytes += strlen(list[count]) + 1 + sizeof *list;
    return count;
}

static long build_stack(const struct image *program, const struct image *interpreter, const char *path,
                        char **arguments, char **environment, unsigned long *result) REQUIRES(one_thread);
static long build_stack(const struct image *program, const struct image *interpreter, const char *path,
                        char **arguments, char **environment, unsigned long *result)
{
    unsigned long size = page_up(process.start.stack_bytes);
    if (size < SMALLEST_STACK || size > LARGEST_STACK)
        size = DEFAULT_STACK;
    unsigned long needed = 0, argument_room = length_of(arguments, &needed) + 1;
    unsigned long room_bytes = (argument_room + length_of(environment, &needed) + 1) * sizeof(long);
    if (needed + STACK_KEPT > size)
        return -E2BIG;
    size += PAGE;
    long low = map_anonymous(STACK_PLACE, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE | MAP_NORESERVE | MAP_STACK);
    if (low < 0)
        return low;
    SYSTEM(__NR_mprotect, low, PAGE, 0);
    process.stack_low = (unsigned long)low;
    process.stack_high = (unsigned long)low + size;
    struct stack stack = {process.stack_high - 8};
    long room = map_anonymous(0, room_bytes, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (room < 0)
        return room;
    unsigned long *pointers = (unsigned long *)room, *environment_at = pointers + argument_room;
    unsigned long name = push(&stack, path, strlen(path) + 1);
    process.environment_end = stack.top;
    unsigned long environment_count = push_strings(&stack, environment, environment_at);
    process.environment_at = process.arguments_end = stack.top;
    unsigned long count = push_strings(&stack, arguments, pointers);
    process.arguments_at = stack.top;
    unsigned long platform = push(&stack, "x86_64", sizeof "x86_64");
    uint8_t random[RANDOM_BYTES];
    SYSTEM(__NR_getrandom, random, sizeof random, 0);
    unsigned long random_at = push(&stack, random, sizeof random);
    const unsigned long auxiliary[][2] = {
        {AT_HWCAP, kernel_value(AT_HWCAP)},
        {AT_PAGESZ, PAGE},
        {AT_CLKTCK, CLOCK_TICKS},
        {AT_PHDR, program->headers},
        {AT_PHENT, sizeof(struct elf64_phdr)},
        {AT_PHNUM, program->header_count},
        {AT_BASE, interpreter->base},
        {AT_FLAGS, 0},
        {AT_ENTRY, program->entry},
        {AT_UID, process.start.uid},
        {AT_EUID, process.start.euid},
        {AT_GID, process.start.gid},
        {AT_EGID, process.start.egid},
        {AT_SECURE, 0},
        {AT_RANDOM, random_at},
        {AT_HWCAP2, kernel_value(AT_HWCAP2)},
        {AT_EXECFN, name},
        {AT_PLATFORM, platform},
        {AT_MINIMAL_STACK, kernel_value(AT_MINIMAL_STACK)},
        {AT_NULL, 0},
    };
    unsigned long words = 1 + count + 1 + environment_count + 1;
    unsigned long bytes = words * 8 + sizeof auxiliary;
    stack.top = ((stack.top - bytes) & ~15ul) + bytes;
    unsigned long zero = 0;
    process.auxiliary_at = push(&stack, auxiliary, sizeof auxiliary);
    process.auxiliary_size = sizeof auxiliary;
    push(&stack, &zero, 8);
    push(&stack, environment_at, environment_count * 8);
    push(&stack, &zero, 8);
    push(&stack, pointers, count * 8);
    *result = push(&stack, &count, 8);
    unmap((unsigned long)room, room_bytes);
    return 0;
}

static char lines[SCRIPT_LEVELS][SCRIPT_LINE] GUARDED_BY(one_thread);
static char scripts[SCRIPT_LEVELS][PATH_LIMIT] GUARDED_BY(one_thread);

/* "#!" files: the interpreter's line becomes the front of the arguments. At most four levels. */
static long follow_scripts(struct thread *self, char *path, char **arguments, char **room, size_t room_count) REQUIRES(one_thread);
static long follow_scripts(struct thread *self, char *path, char **arguments, char **room, size_t room_count)
{
    for (int level = 0;; level++) {
        char start[SCRIPT_LINE] = {0};
        long fd = open_for_running(self, path);
        if (fd < 0)
            return fd;
        long got = read_home(self, (int)fd, start, sizeof start - 1, 0);
        close_home(self, (int)fd);
        if (got < 0)
            return got;
        if (got < 2 || start[0] != '#' || start[1] != '!')
            return 0;
        if (level == SCRIPT_LEVELS)
            return -ELOOP;
        memcpy(lines[level], start, sizeof start);
        char *at = lines[level] + 2;
        for (char *c = at; *c; c++)
            if (*c == '\n')
                *c = 0;
        while (*at == ' ' || *at == '\t')
            at++;
        char *interpreter = at, *option = NULL;
        while (*at && *at != ' ' && *at != '\t')
            at++;
        if (*at) {
            *at++ = 0;
            while (*at == ' ' || *at == '\t')
                at++;
            size_t end = strlen(at);
            while (end && (at[end - 1] == ' ' || at[end - 1] == '\t'))
                at[--end] = 0;
            option = *at ? at : NULL;
        }
        if (!*interpreter)
            return -ENOEXEC;
        memcpy(scripts[level], path, strlen(path) + 1);
        size_t count = 0, front = option ? 3 : 2;
        while (arguments[count])
            count++;
        if (count + front >= room_count)
            return -E2BIG;
        memmove(room + front, arguments + 1, count ? count * sizeof *arguments : sizeof *arguments);
        if (!count)
            room[front] = NULL;
        room[0] = interpreter;
        if (option)
            room[1] = option;
        room[front - 1] = scripts[level];
        memmove(arguments, room, (count + front) * sizeof *room);
        memcpy(path, interpreter, strlen(interpreter) + 1);
    }
}

/* What /proc/self/exe says: where the file really is, with no link on the way. NAME: as it was called, a script's own. */
static void name_program(struct thread *self, const char *path, const char *name)
{
    long fd = open_for_running(self, path);
    struct request request = {.call = OP_PATH_OF, .arguments = {fd}};
    struct vector out = {process.program, sizeof process.program - 1};
    memset(process.program, 0, sizeof process.program);
    if (ask(self, &request, NULL, 0, &out, 1, NULL) < 0)
        memcpy(process.program, path, strlen(path) + 1);
    close_home(self, (int)fd);
    for (const char *at = name; *at; at++)
        if (*at == '/')
            name = at + 1;
    memset(self->name, 0, sizeof self->name);
    for (size_t i = 0; i < sizeof self->name - 1 && name[i]; i++)
        self->name[i] = name[i];
}

static struct image program GUARDED_BY(one_thread), interpreter GUARDED_BY(one_thread);

static long load_words(struct thread *self, char *where, const char *name, char **words, char **environment,
                       unsigned long *entry, unsigned long *stack) REQUIRES(one_thread);
static long load_words(struct thread *self, char *where, const char *name, char **words, char **environment,
                       unsigned long *entry, unsigned long *stack)
{
    long failed;
    memset(&interpreter, 0, sizeof interpreter);
    failed = load_image(self, where, &program);
    if (!failed && program.interpreter[0])
        failed = load_image(self, program.interpreter, &interpreter);
    if (failed)
        return failed;
    name_program(self, where, name);
    /* Programs at fixed places may count on what the kernel does with them: their break follows them. */
    lock(&memory_lock);
    process.break_low = process.break_now = program.base ? BREAK_START : program.high;
    unlock(&memory_lock);
    process.personality &= ~READ_IMPLIES_EXEC;
    failed = build_stack(&program, &interpreter, where, words, environment, stack);
    if (!failed)
        tell_program(self);
    *entry = program.interpreter[0] ? interpreter.entry : program.entry;
    return failed;
}

long load_program(struct thread *self, const char *path, char **arguments, char **environment,
                  unsigned long *entry, unsigned long *stack)
{
    enum { MORE = 16 }; /* words that scripts put in front */
    char where[PATH_LIMIT];
    size_t count = 0;
    while (arguments[count])
        count++;
    size_t bytes = page_up(2 * (count + MORE) * sizeof(char *));
    long failed = copy_path(where, path), memory = SYSTEM(__NR_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    if (is_error(memory))
        return memory;
    char **words = (char **)memory;
    memcpy(words, arguments, (count + 1) * sizeof *words);
    if (failed >= 0)
        failed = follow_scripts(self, where, words, words + count + MORE, count + MORE);
    if (failed >= 0)
        failed = load_words(self, where, path, words, environment, entry, stack);
    SYSTEM(__NR_munmap, memory, bytes);
    return failed;
}
