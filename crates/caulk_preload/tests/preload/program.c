/* What programs do to an allocator. A function of Python's name makes the sampler think that there is one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void *PyGILState_GetThisThreadState(void) { return NULL; }

#define CHECK(what) do { if (!(what)) { printf("line %d: %s\n", __LINE__, #what); exit(1); } } while (0)

static void family(void) {
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
        pages = pvalloc(size);
        CHECK(pages && (uintptr_t)pages % 4096 == 0);
        free(pages);
    }
    void *untouched = NULL;
    CHECK(posix_memalign(&untouched, 3, 8) == EINVAL && untouched == NULL);
    CHECK(malloc(SIZE_MAX / 2) == NULL && errno == ENOMEM);
    CHECK(calloc(SIZE_MAX / 2, 16) == NULL);
    char *kept = malloc(2000000);
    strcpy(kept, "kept");
    CHECK(realloc(kept, SIZE_MAX / 2) == NULL && strcmp(kept, "kept") == 0);
    errno = 0;
    CHECK(reallocarray(kept, SIZE_MAX / 2, 16) == NULL && errno == ENOMEM);
    free(kept);
    free(NULL);
    void *none = realloc(NULL, 100);
    CHECK(none);
    free(none);
    malloc_trim(0);
}

static void keep(void) {
    size_t left = 200000000;
    for (int round = 0; left > 0; round++) {
        static const size_t sizes[] = {1000, 1000, 1000, 20000, 20000, 300000, 1000000};
        size_t size = sizes[round % 7];
        if (size > left) size = left;
        CHECK(malloc(size));
        left -= size;
    }
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

static void vforks(void) {
    for (int i = 0; i < 20; i++) {
        CHECK(malloc(300000));
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void fork_loop(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&all[i], NULL, churn, (void *)2) == 0);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            for (int k = 0; k < 200; k++) free(malloc(100000));
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 4; i++) CHECK(pthread_join(all[i], NULL) == 0);
}

/* A handler may not call malloc while the thread is in it, but the sampler's own work goes on outside of malloc's locks:
 * signals arrive in the middle of that, and allocate. */
static volatile int busy, signalled;

static void on_alarm(int signal) {
    (void)signal;
    if (!busy) {
        free(malloc(700000));
        signalled++;
    }
}

static void start_alarms(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void signals(void) {
    start_alarms();
    for (int i = 0; i < 3000000 && signalled < 3000; i++) {
        busy = 1;
        void *block = malloc(100000);
        busy = 0;
        for (volatile int k = 0; k < 50; k++) {}
        busy = 1;
        free(block);
        busy = 0;
    }
    CHECK(signalled > 10);
}

static sigjmp_buf back;

static void jump(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void *leave(void *argument) {
    free(malloc(900000));
    pthread_exit(argument);
}

static void jumps(void) {
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

int main(int count, char **words) {
    (void)count;
    const char *mode = words[1];
    if (!strcmp(mode, "family")) family();
    if (!strcmp(mode, "keep")) keep();
    if (!strcmp(mode, "threads")) threads(8, 2);
    if (!strcmp(mode, "fork")) forks();
    if (!strcmp(mode, "vfork")) vforks();
    if (!strcmp(mode, "forkloop")) fork_loop();
    if (!strcmp(mode, "signals")) signals();
    if (!strcmp(mode, "jumps")) jumps();
    if (!strcmp(mode, "libraries")) libraries();
    return 0;
}
