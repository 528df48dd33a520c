/* What programs do to an allocator. A function of Python's name makes the sampler think that there is one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void *PyGILState_GetThisThreadState(void) { return NULL; }

/* What an interpreter says of itself: its version, and from 3.13 on what `_PyRuntime` begins with. */
static const char *version = "";
const char *Py_GetVersion(void) { return version; }
uint64_t _PyRuntime[128];

#define CHECK(what) do { if (!(what)) { printf("line %d: %s\n", __LINE__, #what); exit(1); } } while (0)

static const size_t MB = 1000000;

static void family(int pvalloc_too) {
    for (int round = 0; round < 2000; round++) {
        size_t size = 1 + (size_t)round * 517 % 300000;
        errno = 77;
        char *block = malloc(size);
        CHECK(block && (uintptr_t)block % 16 == 0 && malloc_usable_size(block) >= size && errno == 77);
        memset(block, 1, size);
        block = realloc(block, size * 3);
        CHECK(block && block[size - 1] == 1);
        block = reallocarray(block, size, 2);
        CHECK(block && block[0] == 1);
        free(block);
        CHECK(errno == 77);
        char *zeroed = calloc(size, 3);
        for (size_t at = 0; at < size * 3; at += 97) CHECK(zeroed[at] == 0);
        free(zeroed);
        for (size_t alignment = 16; alignment <= 1 << 16; alignment *= 4) {
            void *aligned = NULL;
            CHECK(posix_memalign(&aligned, alignment, size) == 0 && (uintptr_t)aligned % alignment == 0);
            free(aligned);
            aligned = memalign(alignment, size);
            CHECK(aligned && (uintptr_t)aligned % alignment == 0);
            free(aligned);
            aligned = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
            CHECK(aligned && (uintptr_t)aligned % alignment == 0);
            free(aligned);
        }
        void *pages = valloc(size);
        CHECK(pages && (uintptr_t)pages % 4096 == 0);
        free(pages);
        if (!pvalloc_too) continue;
        pages = pvalloc(size);
        CHECK(pages && (uintptr_t)pages % 4096 == 0);
        free(pages);
    }
    void *untouched = NULL;
    CHECK(posix_memalign(&untouched, 3, 8) == EINVAL && untouched == NULL);
    CHECK(malloc(SIZE_MAX / 2) == NULL && errno == ENOMEM);
    CHECK(calloc(SIZE_MAX / 2, 16) == NULL);
    char *kept = malloc(20 * MB);
    strcpy(kept, "kept");
    CHECK(realloc(kept, SIZE_MAX / 2) == NULL && strcmp(kept, "kept") == 0);
    errno = 0;
    CHECK(reallocarray(kept, SIZE_MAX / 2, 16) == NULL && errno == ENOMEM);
    free(kept);
    free(NULL);
    void *none = realloc(NULL, 100);
    CHECK(none);
    free(none);
    /* Of C23: the C library may not have them yet. */
    void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    void (*aligned)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    for (int i = 0; i < 20 && sized && aligned; i++) {
        sized(malloc(10 * MB), 10 * MB);
        aligned(aligned_alloc(64, 64 * MB), 64, 64 * MB);
    }
    CHECK(!dlsym(RTLD_DEFAULT, "caulk_heap_begin") || (sized && aligned));
    malloc_trim(0);
}

/* In a program at fixed addresses this makes an entry of its own for malloc, and gives malloc its address. */
static void *(*volatile allocate)(size_t) = malloc;

/* What a block of glibc's takes beyond what was asked for: rounding, and a head of a word, or of two from the size on from
   which it has a mapping of its own (M_MMAP_THRESHOLD, as long as no such block was freed). */
static size_t beyond(void *block, size_t size) {
    size_t head = size < 128 * 1024 ? sizeof(size_t) : 2 * sizeof(size_t);
    return malloc_usable_size(block) + head - size;
}

static void keep(void) {
    size_t left = 200000000, more = 0;
    for (int round = 0; left > 0; round++) {
        static const size_t sizes[] = {1000, 1000, 1000, 20000, 20000, 300000, 1000000};
        size_t size = sizes[round % 7];
        if (size > left) size = left;
        void *block = allocate(size);
        CHECK(block);
        more += beyond(block, size);
        left -= size;
    }
    struct mallinfo2 info = mallinfo2();
    printf("%zu\n", info.uordblks + info.hblkhd - more);
}

static void keep_between_failures(void) {
    char *kept = allocate(50 * MB);
    strcpy(kept, "kept");
    CHECK(realloc(kept, SIZE_MAX / 4) == NULL && strcmp(kept, "kept") == 0);
    for (int i = 0; i < 1000; i++) {
        CHECK(allocate(SIZE_MAX / 4) == NULL && calloc(SIZE_MAX / 8, 2) == NULL);
        void *none = realloc(NULL, SIZE_MAX / 4);
        CHECK(!none && allocate(16));
    }
    /* Beyond half of all addresses: not taken for less than nothing. */
    for (int i = 0; i < 100; i++) CHECK(allocate(SIZE_MAX - 4096) == NULL);
    keep();
}

static void *churn(void *seconds) {
    unsigned seed = (unsigned)(uintptr_t)&seed;
    void *held[512] = {0};
    double until = (double)(intptr_t)seconds * 1e6;
    struct timeval begin, now;
    gettimeofday(&begin, NULL);
    do {
        for (int i = 0; i < 2000; i++) {
            int at = rand_r(&seed) % 512;
            free(held[at]);
            held[at] = malloc((size_t)1 << rand_r(&seed) % 20);
        }
        gettimeofday(&now, NULL);
    } while ((now.tv_sec - begin.tv_sec) * 1e6 + (now.tv_usec - begin.tv_usec) < until);
    for (int at = 0; at < 512; at++) free(held[at]);
    return NULL;
}

static void threads(int count, int seconds) {
    pthread_t all[16];
    for (int i = 0; i < count; i++) CHECK(pthread_create(&all[i], NULL, churn, (void *)(intptr_t)seconds) == 0);
    for (int i = 0; i < count; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

/* Blocks that one thread makes and another one frees, in a ring of their own each. */
static void *rings[8][256];

static void *stress(void *argument) {
    double until = (double)(intptr_t)argument * 1e6;
    unsigned seed = (unsigned)(uintptr_t)pthread_self();
    struct timeval begin, now;
    gettimeofday(&begin, NULL);
    do {
        for (int i = 0; i < 2000; i++) {
            int ring = rand_r(&seed) % 8, at = rand_r(&seed) % 256;
            size_t size = (size_t)16 << rand_r(&seed) % 16;
            char *block = rand_r(&seed) % 3 ? malloc(size) : calloc(1, size);
            if (rand_r(&seed) % 4 == 0) block = realloc(block, size * 2);
            block[0] = block[size - 1] = 1;
            free(__atomic_exchange_n(&rings[ring][at], block, __ATOMIC_ACQ_REL));
        }
        gettimeofday(&now, NULL);
    } while ((now.tv_sec - begin.tv_sec) * 1e6 + (now.tv_usec - begin.tv_usec) < until);
    return NULL;
}

static void stress_all(const char *seconds) {
    pthread_t all[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&all[i], NULL, stress, (void *)(intptr_t)atoi(seconds)) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(all[i], NULL) == 0);
    for (int i = 0; i < 8 * 256; i++) free(rings[i / 256][i % 256]);
}

static void forks(void) {
    void *shared = malloc(10000000);
    pid_t child = fork();
    if (child == 0) {
        CHECK(malloc(30000000));
        free(shared);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* More processes than there are slots: 70 at a time, and this one. */
static void many_forks(void) {
    int go[2], done[2];
    char byte = 0;
    CHECK(pipe(go) == 0 && pipe(done) == 0 && malloc(10 * MB));
    for (int i = 0; i < 70; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            close(go[1]);
            byte = malloc(10 * MB) == NULL;
            CHECK(write(done[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 0);
            _exit(0);
        }
    }
    for (int i = 0; i < 70; i++) CHECK(read(done[0], &byte, 1) == 1 && byte == 0);
    close(go[1]);
    int status;
    while (wait(&status) > 0) CHECK(status == 0);
}

/* A child that holds 10 MB and waits to be told; `watched`: an agent reports of it. */
static pid_t holding(int go[2], int done[2], int watched) {
    char byte = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(go[1]);
        CHECK(malloc(10 * MB));
        if (watched) {
            void (*begin)(unsigned) = (void (*)(unsigned))dlsym(RTLD_DEFAULT, "caulk_heap_begin");
            CHECK(begin);
            begin(1);
        }
        CHECK(write(done[1], &byte, 1) == 1 && read(go[0], &byte, 1) == 0);
        _exit(0);
    }
    CHECK(read(done[0], &byte, 1) == 1);
    return child;
}

/* Far more processes than there are slots, one after the other, beside one that lives and one of an agent that was killed.
 * None is waited for before they all have ended. */
static void forks_in_turn(void) {
    int go[2], done[2], status;
    CHECK(pipe(go) == 0 && pipe(done) == 0 && malloc(10 * MB));
    holding(go, done, 0);
    pid_t watched = holding(go, done, 1);
    CHECK(kill(watched, SIGKILL) == 0 && waitpid(watched, &status, 0) == watched);
    for (int i = 0; i < 160; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (int k = 0; k < 40; k++) CHECK(malloc(MB));
            _exit(0);
        }
        siginfo_t info;
        CHECK(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
    }
    holding(go, done, 0);
    close(go[1]);
    while (wait(&status) > 0) CHECK(status == 0);
}

static void killed(void) {
    void *held[40];
    for (int i = 0; i < 40; i++) held[i] = malloc(MB);
    for (int i = 0; i < 40; i += 4) free(held[i]);
    raise(SIGKILL);
}

/* What the child allocates is the parent's, in whose memory it runs (but under valgrind, where a vfork is a fork). */
static void vforks(void) {
    for (int i = 0; i < 20; i++) {
        void *volatile kept = NULL;
        CHECK(malloc(300000));
        pid_t child = vfork();
        if (child == 0) {
            for (int k = 0; k < 20; k++) free(malloc(300000));
            kept = malloc(10 * MB);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        if (i % 2) free(kept);
    }
}

/* Programs that `posix_spawn` starts: each has what it keeps for itself. */
static void spawns(void) {
    CHECK(malloc(10 * MB));
    for (int i = 0; i < 3; i++) {
        char *words[] = {"program", "keep", NULL};
        pid_t child;
        int status;
        CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ) == 0);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void fork_loop(const char *seconds) {
    pthread_t all[4];
    time_t until = time(NULL) + atoi(seconds);
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, churn, (void *)(intptr_t)atoi(seconds)) == 0);
    do {
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 200; k++) free(malloc(100000));
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    } while (time(NULL) < until);
    for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

/* A handler may not call malloc where it may have interrupted malloc. It may where it interrupts mmap, whose hook samples as
 * all do: then it allocates in the middle of a sample. */
static volatile int signalled;

static void on_alarm(int signal) {
    (void)signal;
    free(malloc(700000));
    signalled++;
}

static void start_alarms(void (*handler)(int), int microseconds) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, NULL);
}

/* For a handler that jumps: on a slow machine a next alarm would be there before it had left, and so on down the stack. */
static void start_alarm(void (*handler)(int), int microseconds) {
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval once = {{0, 0}, {0, microseconds}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void stop_alarms(void) {
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
}

/* As the agent lets it begin: pools of small objects are told apart from other mappings. */
unsigned caulk_heap_prepare(void) __attribute__((weak));
int caulk_heap_begin(unsigned refusal) __attribute__((weak));

static void *map(void *at, size_t bytes, int flags) {
    void *start = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(start != MAP_FAILED);
    return start;
}

static void signals(int most) {
    if (caulk_heap_begin) caulk_heap_begin(0);
    start_alarms(on_alarm, 200);
    for (int i = 0; i < 10000000 && signalled < most; i++) CHECK(munmap(map(NULL, MB, 0), MB) == 0);
    stop_alarms();
    CHECK(signalled > 10);
}

/* The C library allocates with its locks taken where it makes a thread: a handler that comes then may map alone. */
static void map_on_alarm(int signal) {
    (void)signal;
    CHECK(munmap(map(NULL, MB, 0), MB) == 0);
    signalled++;
}

static void *nothing(void *argument) {
    return argument;
}

static void signals_at_threads(int most) {
    if (caulk_heap_begin) caulk_heap_begin(0);
    start_alarms(map_on_alarm, 100);
    while (signalled < most) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    stop_alarms();
}

/* With one thread the C library takes none of its locks for a fork: a handler may fork wherever the thread is. */
static void fork_on_alarm(int signal) {
    (void)signal;
    pid_t child = fork();
    if (child == 0) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    signalled++;
}

static void handler_forks(void) {
    start_alarms(fork_on_alarm, 2000);
    while (signalled < 300) free(malloc(600000));
}

static sigjmp_buf back;

static void jump(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void jump_on_alarm(int signal) {
    (void)signal;
    signalled++;
    siglongjmp(back, 1);
}

/* Allocates further down on the stack than it was. */
static void keep_below(int depth) {
    volatile char below[1000];
    below[depth] = 1;
    if (depth > 0) keep_below(depth - 1);
    else keep();
    below[depth]++;
}

/* Out of the middle of samples. */
static void jump_out(int most) {
    if (caulk_heap_begin) caulk_heap_begin(0);
    while (signalled < most) {
        if (sigsetjmp(back, 1) == 0) {
            start_alarm(jump_on_alarm, 500);
            for (;;) munmap(map(NULL, MB / 16, 0), MB / 16);
        }
    }
    keep_below(30);
}

static pthread_key_t last;

/* Runs when the thread's own functions have returned, and once more for what it sets. */
static void after_leaving(void *block) {
    free(block);
    static __thread int again = 1;
    if (again--) pthread_setspecific(last, malloc(900000));
}

static void *leave(void *argument) {
    pthread_setspecific(last, malloc(900000));
    free(malloc(900000));
    pthread_exit(argument);
}

static void jumps(void) {
    CHECK(pthread_key_create(&last, after_leaving) == 0);
    signal(SIGUSR1, jump);
    for (int i = 0; i < 200; i++) {
        if (sigsetjmp(back, 1) == 0) {
            free(malloc(900000));
            raise(SIGUSR1);
        }
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, leave, NULL) == 0);
        if (i % 3 == 0) pthread_cancel(thread);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void libraries(void) {
    for (int i = 0; i < 50; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        CHECK(library && dlsym(library, "cos"));
        free(malloc(700000));
        CHECK(dlclose(library) == 0);
        CHECK(dlopen("no-such-library.so", RTLD_NOW) == NULL && dlerror());
    }
}

static void *map_arena(void *context, size_t bytes) {
    (void)context;
    return map(NULL, bytes, 0);
}

static void *(*arenas[3])(void *, size_t) = {NULL, map_arena, NULL};
void PyObject_GetArenaAllocator(void **out) { memcpy(out, arenas, sizeof arenas); }
void PyObject_SetArenaAllocator(void **in) { memcpy(arenas, in, sizeof arenas); }

static const size_t PAGES = 1 << 22;

static void mappings(void) {
    map(NULL, 50 * PAGES, 0);
    if (caulk_heap_begin) caulk_heap_begin(0);
    /* Not memory to work with, or told of by other means. */
    CHECK(arenas[1](NULL, 50 * PAGES));
    map(NULL, 50 * PAGES, MAP_NORESERVE);
    CHECK(mmap(NULL, 50 * PAGES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    /* 4 parts of 10 stay: one end and two pieces around a hole. */
    char *part = map(NULL, 10 * PAGES, 0);
    CHECK(munmap(part, 3 * PAGES) == 0 && munmap(part + 4 * PAGES, 3 * PAGES) == 0);
    /* Grown: 8 parts. */
    char *grown = map(NULL, 4 * PAGES, 0);
    grown[5] = 1;
    grown = mremap(grown, 4 * PAGES, 8 * PAGES, MREMAP_MAYMOVE);
    CHECK(grown != MAP_FAILED && grown[5] == 1);
    CHECK(mremap(grown, 8 * PAGES, SIZE_MAX / 2, MREMAP_MAYMOVE) == MAP_FAILED);
    /* Replaced by another one: 6 parts. */
    char *replaced = map(NULL, 6 * PAGES, 0);
    CHECK(map(replaced, 6 * PAGES, MAP_FIXED) == replaced);
    for (int i = 0; i < 3000; i++) {
        void *passing = map(NULL, PAGES / 8, 0);
        CHECK(munmap(passing, PAGES / 8) == 0);
    }
    CHECK(munmap((void *)1, 1) == -1 && errno == EINVAL);
    CHECK(munmap(map(NULL, 1, 0), 1) == 0);
    /* Refused: all of them stay. */
    CHECK(munmap(replaced + 1, 6 * PAGES) == -1 && errno == EINVAL);
    CHECK(mmap(replaced + 1, 6 * PAGES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
    CHECK(mremap(grown, 8 * PAGES, 9 * PAGES, MREMAP_MAYMOVE | MREMAP_FIXED, replaced + 1) == MAP_FAILED);
    /* Shrunk: 2 parts. */
    CHECK(mremap(map(NULL, 4 * PAGES, 0), 4 * PAGES, 2 * PAGES, 0) != MAP_FAILED);
    /* Too small to be sampled, and grown: 1 part each. */
    for (int i = 0; i < 4; i++) CHECK(mremap(map(NULL, 4096, 0), 4096, 4096 + PAGES, MREMAP_MAYMOVE) != MAP_FAILED);
    /* A file is no memory, however it grows. */
    int file = memfd_create("file", 0);
    CHECK(file >= 0 && ftruncate(file, 9 * (off_t)PAGES) == 0);
    errno = 77;
    void *view = mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(mremap(view, PAGES, 9 * PAGES, MREMAP_MAYMOVE) != MAP_FAILED && errno == 77);
}

/* Many mappings that stay, each of which every other one is compared with as it goes. */
static void unmaps(void) {
    if (caulk_heap_begin) caulk_heap_begin(0);
    for (int i = 0; i < 1000; i++) map(NULL, 2 * PAGES, 0);
    for (int i = 0; i < 200000; i++) CHECK(munmap(map(NULL, 4096, 0), 4096) == 0);
}

/* An interpreter of a version of this name, and of what it says of its memory. */
static void interpreter(char **words) {
    version = words[2];
    memcpy(_PyRuntime, words[3], strlen(words[3]));
    _PyRuntime[1] = strtoull(words[4], NULL, 16);
    _PyRuntime[2] = atoi(words[5]);
    CHECK(caulk_heap_prepare && caulk_heap_begin);
    caulk_heap_begin(caulk_heap_prepare());
    for (int i = 0; i < 10; i++) CHECK(malloc(10 * MB));
}

/* Before any library's constructor: the allocator behind the sampler is not known yet. */
static char *early[3];

static void allocate_early(int count, char **words, char **variables) {
    (void)count, (void)words, (void)variables;
    early[0] = malloc(100);
    if (early[0]) strcpy(early[0], "early");
    early[1] = calloc(10, 30);
    early[2] = malloc(1);
}

__attribute__((section(".preinit_array"), used)) static void (*before)(int, char **, char **) = allocate_early;

static void early_blocks(void) {
    CHECK(early[0] && !strcmp(early[0], "early") && (uintptr_t)early[0] % 16 == 0);
    for (int i = 0; i < 300; i++) CHECK(early[1] && early[1][i] == 0);
    early[0] = realloc(early[0], 100000);
    CHECK(early[0] && !strcmp(early[0], "early"));
    free(early[0]);
    free(early[1]);
    free(early[2]);
    for (int i = 0; i < 1000; i++) {
        CHECK(setlocale(LC_ALL, i % 2 ? "C" : "") || setlocale(LC_ALL, "C"));
        free(malloc(70000));
    }
}

static void trim(void) {
    for (int round = 0; round < 20; round++) {
        void *held[400];
        for (int i = 0; i < 400; i++) memset(held[i] = malloc(10000 + 1000 * (size_t)i), 1, 10000);
        for (int i = 0; i < 400; i += 2) free(held[i]);
        malloc_trim(0);
        for (int i = 1; i < 400; i += 2) {
            CHECK(*(char *)held[i] == 1);
            free(held[i]);
        }
        malloc_trim(0);
        struct mallinfo2 info = mallinfo2();
        CHECK(info.uordblks + info.hblkhd < 2 * MB);
    }
}

int main(int count, char **words) {
    CHECK(count > 1);
    const char *mode = words[1];
    if (!strcmp(mode, "family")) family(count == 2);
    if (!strcmp(mode, "keep")) keep();
    if (!strcmp(mode, "threads")) threads(8, 2);
    if (!strcmp(mode, "stress")) stress_all(words[2]);
    if (!strcmp(mode, "fork")) forks();
    if (!strcmp(mode, "failing")) keep_between_failures();
    if (!strcmp(mode, "manyforks")) many_forks();
    if (!strcmp(mode, "forksinturn")) forks_in_turn();
    if (!strcmp(mode, "killed")) killed();
    if (!strcmp(mode, "vfork")) vforks();
    if (!strcmp(mode, "spawns")) spawns();
    if (!strcmp(mode, "forkloop")) fork_loop(words[2]);
    if (!strcmp(mode, "signals")) signals(count > 2 ? atoi(words[2]) : 3000);
    if (!strcmp(mode, "threadsignals")) signals_at_threads(count > 2 ? atoi(words[2]) : 3000);
    if (!strcmp(mode, "handlerforks")) handler_forks();
    if (!strcmp(mode, "jumps")) jumps();
    if (!strcmp(mode, "jumpout")) jump_out(count > 2 ? atoi(words[2]) : 300);
    if (!strcmp(mode, "libraries")) libraries();
    if (!strcmp(mode, "mappings")) mappings();
    if (!strcmp(mode, "unmaps")) unmaps();
    if (!strcmp(mode, "interpreter")) interpreter(words);
    if (!strcmp(mode, "early")) early_blocks();
    if (!strcmp(mode, "trim")) trim();
    return 0;
}
