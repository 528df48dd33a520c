/* What malloc has handed out, as the sampler counts it block by block and as malloc says. A function of Python's name makes
   the sampler think that there is one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void *PyGILState_GetThisThreadState(void) { return NULL; }
_Bool caulk_heap_in_use(uint64_t *sums) __attribute__((weak));

#define CHECK(what) do { if (!(what)) { printf("line %d: %s\n", __LINE__, #what); exit(1); } } while (0)

struct now { int64_t bytes, blocks, singly; };

static struct now counted(void) {
    uint64_t sums[3];
    CHECK(caulk_heap_in_use && caulk_heap_in_use(sums));
    return (struct now){(int64_t)sums[0], (int64_t)sums[1], (int64_t)sums[2]};
}

static int64_t said(void) {
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}

/* How far the two were apart at the beginning: what malloc keeps for itself. */
static int64_t apart;

static int64_t off(void) { return said() - counted().bytes - apart; }

#define SAME(most) do { int64_t now_off = off(); if (llabs(now_off) > (int64_t)(most)) { \
    printf("line %d: malloc says %ld more of %ld\n", __LINE__, (long)now_off, (long)said()); exit(1); } } while (0)

/* Each shape of each function, with one thread and without a thread cache: to the byte, after every call. */
static void shapes(void) {
    static const size_t sizes[] = {0, 1, 24, 25, 100, 1000, 1032, 1033, 5000, 70000, 131000, 140000, 400000, 3000000, 40000000};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    struct now first = counted();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) {
            char *block = malloc(sizes[i]);
            SAME(0);
            CHECK(counted().blocks == first.blocks + 1);
            for (int k = 0; k < COUNT; k++) {
                if (sizes[k] == 0) continue;
                block = realloc(block, sizes[k]);
                CHECK(block && counted().blocks == first.blocks + 1);
                SAME(0);
                block = reallocarray(block, sizes[k] / 3 + 1, 2);
                CHECK(block);
                SAME(0);
            }
            CHECK(!realloc(block, SIZE_MAX / 2) && !reallocarray(block, SIZE_MAX / 2, 16));
            SAME(0);
            CHECK(counted().blocks == first.blocks + 1);
            free(block);
            SAME(0);
            free(calloc(sizes[i], 1));
            char *zeroed = calloc(3, sizes[i]);
            SAME(0);
            CHECK(realloc(zeroed, 0) == NULL);
            SAME(0);
            CHECK(counted().blocks == first.blocks);
            for (size_t alignment = 16; alignment <= 4 << 20; alignment *= 8) {
                void *aligned[5] = {NULL};
                CHECK(posix_memalign(&aligned[0], alignment, sizes[i]) == 0);
                SAME(0);
                aligned[1] = memalign(alignment, sizes[i]);
                aligned[2] = aligned_alloc(alignment, sizes[i]);
                aligned[3] = valloc(sizes[i]);
                aligned[4] = pvalloc(sizes[i]);
                SAME(0);
                CHECK(counted().blocks == first.blocks + 5);
                aligned[1] = realloc(aligned[1], sizes[i] * 2 + 1);
                SAME(0);
                for (int k = 0; k < 5; k++) free(aligned[k]);
                SAME(0);
            }
        }
        CHECK(!malloc(SIZE_MAX / 2) && !calloc(SIZE_MAX / 2, 16) && !memalign(4096, SIZE_MAX / 2));
        CHECK(!realloc(NULL, SIZE_MAX / 2));
        void *untouched = NULL;
        CHECK(posix_memalign(&untouched, 3, 8) && !untouched);
        free(NULL);
        free(realloc(NULL, 100));
        void (*sized)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
        CHECK(sized);
        sized(malloc(5000), 5000);
        struct now now = counted();
        CHECK(now.blocks == first.blocks && now.singly == first.singly);
        SAME(0);
        /* From now on much larger blocks share the heap, or much smaller ones do not. */
        CHECK(mallopt(M_MMAP_THRESHOLD, round ? 4096 : 30000000));
    }
    void *single = malloc(200 << 20);
    CHECK(counted().singly - first.singly == (200 << 20) + 4096);
    free(single);
    CHECK(counted().singly == first.singly);
}

/* A program's usual mixture, with the thread cache: what changes, within half a percent. */
static void *kept[400000];

static void mixture(void) {
    unsigned seed = 7;
    int64_t before_counted = counted().bytes, before_said = said();
    for (int i = 0; i < 400000; i++) kept[i] = malloc((size_t)1 << rand_r(&seed) % 11);
    for (int round = 0; round < 2000000; round++) {
        int at = (int)(rand_r(&seed) % 400000);
        free(kept[at]);
        kept[at] = calloc(1, (size_t)16 + rand_r(&seed) % 700);
    }
    int64_t by_count = counted().bytes - before_counted, by_malloc = said() - before_said;
    printf("%ld of %ld\n", (long)by_count, (long)by_malloc);
    CHECK(llabs(by_count - by_malloc) * 200 <= by_malloc);
}

enum { RING = 4096, THREADS = 8 };
static void *ring[RING];
static pthread_barrier_t together;

/* Makes blocks and frees those of others. */
static void *crosswise(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    for (int i = 0; i < 50000; i++) {
        size_t size = (size_t)8 << rand_r(&seed) % 14;
        void *block = rand_r(&seed) % 2 ? malloc(size) : memalign(64, size);
        if (rand_r(&seed) % 4 == 0) block = realloc(block, size * 3);
        free(__atomic_exchange_n(&ring[rand_r(&seed) % RING], block, __ATOMIC_ACQ_REL));
    }
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    return NULL;
}

/* What malloc keeps for itself of an arena, and of a thread. */
enum { OWN = 6000 };

static void threads(void) {
    pthread_t all[THREADS];
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (intptr_t round = 0; round < 3; round++) {
        for (intptr_t i = 0; i < THREADS; i++) CHECK(!pthread_create(&all[i], NULL, crosswise, (void *)(round * 100 + i)));
        pthread_barrier_wait(&together);
        CHECK(counted().bytes > 10000000);
        SAME(THREADS * OWN);
        pthread_barrier_wait(&together);
        for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(all[i], NULL));
        SAME(THREADS * OWN);
    }
    /* By a thread that has made none of them. */
    int64_t all_kept = counted().bytes;
    for (int i = 0; i < RING; i++) free(ring[i]);
    CHECK(counted().bytes < all_kept - 5000000 && counted().bytes < 5000000);
    SAME(THREADS * OWN);
}

static pthread_key_t key;
static __thread char *of_thread;

static void at_the_end(void *block) {
    free(block);
    for (int i = 0; i < 10; i++) free(malloc(3000));
    __atomic_store_n(&ring[0], realloc(__atomic_exchange_n(&ring[0], NULL, __ATOMIC_ACQ_REL), 5000), __ATOMIC_RELEASE);
}

static void *short_lived(void *argument) {
    of_thread = malloc(2000);
    CHECK(!pthread_setspecific(key, malloc(1000)));
    free(of_thread);
    return argument ? memset(malloc(500), 1, 500) : NULL;
}

/* Far more threads than there are lines, one after the other: each leaves 500 bytes, and allocates when it has ended. */
static void thread_ends(void) {
    CHECK(!pthread_key_create(&key, at_the_end));
    struct now before = counted();
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        void *left;
        CHECK(!pthread_create(&thread, NULL, short_lived, &thread));
        CHECK(!pthread_join(thread, &left) && left);
    }
    struct now now = counted();
    int64_t blocks = now.blocks - before.blocks, bytes = now.bytes - before.bytes;
    /* Of malloc's own are one block of a thread's end, and the loader's for a thread's storage. */
    printf("%ld blocks, %ld bytes\n", (long)blocks, (long)bytes);
    CHECK(blocks >= 3001 && blocks < 3010 && bytes >= 3000 * 512 && bytes < 3000 * 512 + 16000);
    SAME(4 * OWN);
}

enum { CROWD = 1100 };

static void *waits(void *argument) {
    void *held = malloc(10000);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    free(held);
    return argument;
}

/* More threads at a time than there are lines. */
static void crowd(void) {
    static pthread_t all[CROWD];
    pthread_attr_t small;
    CHECK(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 64 << 10));
    pthread_barrier_init(&together, NULL, CROWD + 1);
    int64_t before = counted().bytes;
    for (int i = 0; i < CROWD; i++) CHECK(!pthread_create(&all[i], &small, waits, NULL));
    pthread_barrier_wait(&together);
    int64_t more = counted().bytes - before;
    printf("%ld more\n", (long)more);
    CHECK(more >= CROWD * 10000 && more < CROWD * 12000);
    pthread_barrier_wait(&together);
    for (int i = 0; i < CROWD; i++) CHECK(!pthread_join(all[i], NULL));
    CHECK(counted().bytes - before < 400 * 1000);
}

static void *frees(void *block) {
    free(block);
    return malloc(300000);
}

static void wait_for(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* A child begins with what its parent had, whichever of its threads had made it, and goes on by itself; so do its own. */
static void forks(void) {
    threads();
    for (int i = 0; i < 20000; i++) kept[i] = malloc(1000);
    int64_t before = counted().bytes;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(counted().bytes == before && before > 20000000);
        for (int i = 0; i < 10000; i++) free(kept[i]);
        pthread_t thread;
        void *made;
        CHECK(!pthread_create(&thread, NULL, frees, kept[10000]) && !pthread_join(thread, &made) && made);
        CHECK(counted().bytes < before - 9500000);
        SAME(2 * THREADS * OWN);
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            for (int i = 10001; i < 20000; i++) free(kept[i]);
            SAME(2 * THREADS * OWN);
            _exit(0);
        }
        wait_for(grandchild);
        SAME(2 * THREADS * OWN);
        _exit(0);
    }
    wait_for(child);
    CHECK(counted().bytes == before);
    child = vfork();
    if (child == 0) {
        kept[20000] = malloc(1000);
        _exit(0);
    }
    wait_for(child);
    CHECK(counted().bytes == before + 1008);
    SAME(2 * THREADS * OWN);
}

static void libraries(void) {
    for (int i = 0; i < 20; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        void *other = dlopen("libresolv.so.2", RTLD_NOW);
        CHECK(library && !dlopen("libnone.so", RTLD_NOW) && dlerror());
        SAME(0);
        if (other) dlclose(other);
        dlclose(library);
        SAME(0);
    }
    FILE *file = fopen("/proc/self/maps", "r");
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) SAME(0);
    free(line);
    fclose(file);
    char *text;
    CHECK(asprintf(&text, "%0200d", 7) == 200);
    SAME(0);
    free(text);
    SAME(0);
}

/* Says what malloc has handed out, and is killed in the middle of its work. */
static void killed(void) {
    for (int i = 0; i < 100000; i++) kept[i] = malloc(700);
    for (int i = 0; i < 100000; i += 5) free(kept[i]);
    kept[0] = malloc(50000000);
    char text[64];
    int length = snprintf(text, sizeof text, "%ld\n", (long)(said() - apart));
    CHECK(write(1, text, (size_t)length) == length);
    raise(SIGKILL);
}

int main(int count, char **words) {
    CHECK(count > 1);
    const char *mode = words[1];
    setvbuf(stdout, NULL, _IONBF, 0);
    if (!strcmp(mode, "none")) return !malloc(10000000) || !caulk_heap_in_use || caulk_heap_in_use((uint64_t[3]){0});
    apart = said() - counted().bytes;
    /* What was there before the library: all but what malloc keeps for itself. */
    CHECK(llabs(apart) < 2000);
    if (!strcmp(mode, "shapes")) shapes();
    if (!strcmp(mode, "mixture")) mixture();
    if (!strcmp(mode, "threads")) threads();
    if (!strcmp(mode, "threadends")) thread_ends();
    if (!strcmp(mode, "crowd")) crowd();
    if (!strcmp(mode, "forks")) forks();
    if (!strcmp(mode, "libraries")) libraries();
    if (!strcmp(mode, "killed")) killed();
    return 0;
}
