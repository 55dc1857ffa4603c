/* What the operations of a fork-parallel program cost on this computer: lines of a name and a number.
 *
 *     probe WORKERS CACHE_BYTES
 *
 * Times are in nanoseconds an item. Each is the lower quartile of many short windows, so that a window in which the
 * system ran something else does not count.
 */
#include "soft_fp32.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_WINDOWS 4096

static int64_t sink;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quartile(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 4];
}

static void *shared(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return at;
}

static int64_t element(void)
{
    float value = (float)rand() / (float)RAND_MAX * 2 - 1;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static int64_t *elements(size_t count)
{
    int64_t *at = shared(8 * count);
    for (size_t i = 0; i < count; i++)
        at[i] = element();
    return at;
}

/* A multiply and an add that wait for the sum before them, over rows of 4096 that are not the same twice. */
static double multiply_add(const int64_t *a, const int64_t *b, int windows)
{
    double times[MOST_WINDOWS];
    for (int w = 0; w < windows; w++) {
        const int64_t *row = a + 4096 * (size_t)(w % 64), *column = b + 4096 * (size_t)(w / 64 % 64);
        double begin = now();
        int64_t sum = 0;
        for (int i = 0; i < 4096; i++)
            sum = soft_add(sum, soft_mul(row[i], column[i]));
        times[w] = (now() - begin) / 4096;
        sink += sum;
    }
    return quartile(times, windows);
}

static double add(const int64_t *a)
{
    double times[256];
    for (int w = 0; w < 256; w++) {
        const int64_t *row = a + 4096 * (size_t)(w % 64);
        double begin = now();
        int64_t sum = 0;
        for (int i = 0; i < 4096; i++)
            sum = soft_add(sum, row[i]);
        times[w] = (now() - begin) / 4096;
        sink += sum;
    }
    return quartile(times, 256);
}

/* A transposition of 64 rows of 64 elements. */
static double move(const int64_t *a, int64_t *out)
{
    double times[256];
    for (int w = 0; w < 256; w++) {
        double begin = now();
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 64; j++)
                out[j * 72 + i] = a[i * 64 + j];
        times[w] = (now() - begin) / 4096;
        sink += out[w];
    }
    return quartile(times, 256);
}

/* Stores to 576 lines in turn, 25,088 bytes apart, as im2col of 56 x 56 outputs makes them. */
static double scatter(const int64_t *a)
{
    size_t step = 3136, rows = 576;
    int64_t *out = shared(8 * step * rows);
    memset(out, 0, 8 * step * rows);
    double times[48];
    for (size_t w = 0; w < 48; w++) {
        double begin = now();
        for (size_t p = 64 * w; p < 64 * w + 64; p++)
            for (size_t k = 0; k < rows; k++)
                out[k * step + p] = a[p + k];
        times[w] = (now() - begin) / (64 * (double)rows);
    }
    sink += out[step];
    munmap(out, 8 * step * rows);
    return quartile(times, 48);
}

/* Columns of 8 channels of 16 x 16 under a kernel of 3 x 3 with a pad of 1: the comparisons and the move of a tap. */
static double tap(const int64_t *a, int64_t *out)
{
    double times[256];
    for (int w = 0; w < 256; w++) {
        double begin = now();
        for (int64_t oh = 0; oh < 16; oh++)
            for (int64_t ow = 0; ow < 16; ow++)
                for (int64_t ci = 0; ci < 8; ci++)
                    for (int64_t kh = 0; kh < 3; kh++)
                        for (int64_t kw = 0; kw < 3; kw++) {
                            int64_t ih = oh + kh - 1, iw = ow + kw - 1, v = 0;
                            if (ih >= 0 && ih < 16 && iw >= 0 && iw < 16)
                                v = a[ci * 256 + ih * 16 + iw];
                            out[(ci * 9 + kh * 3 + kw) * 256 + oh * 16 + ow] = v;
                        }
        times[w] = (now() - begin) / (256 * 72);
        sink += out[w];
    }
    return quartile(times, 256);
}

/* The first touch of a page of a fresh mapping, and its release. */
static double page(void)
{
    double times[64];
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    for (int w = 0; w < 64; w++) {
        double begin = now();
        char *at = shared(512 * size);
        for (size_t i = 0; i < 512; i++)
            at[i * size] = 1;
        munmap(at, 512 * size);
        times[w] = (now() - begin) / 512;
    }
    return quartile(times, 64);
}

/* A write to a line that is in no cache, one after another at a stride, over eight times the cache. */
static double line(size_t cache)
{
    size_t count = 8 * cache / 64, step = 67;
    int64_t *at = shared(64 * count);
    memset(at, 1, 64 * count);
    double times[64];
    for (int w = 0; w < 64; w++) {
        size_t place = (size_t)w * 4099 % count;
        double begin = now();
        for (int i = 0; i < 4096; i++) {
            at[8 * place] += 1;
            place = (place + step * 64) % count;
        }
        times[w] = (now() - begin) / 4096;
    }
    munmap(at, 64 * count);
    return quartile(times, 64);
}

/* Nanoseconds a byte, of those read and those written, when a block of four caches is copied. */
static double byte(size_t cache)
{
    size_t size = 4 * cache;
    char *from = shared(size), *to = shared(size);
    memset(from, 1, size);
    memset(to, 1, size);
    double times[32];
    for (int w = 0; w < 32; w++) {
        double begin = now();
        memcpy(to, from, size);
        times[w] = (now() - begin) / (2 * (double)size);
    }
    munmap(from, size);
    munmap(to, size);
    return quartile(times, 32);
}

/* Nanoseconds a byte of all workers together, each with blocks of its own. */
static double byte_together(size_t cache, int workers)
{
    double *found = shared(sizeof(double) * (size_t)workers), rate = 0;
    for (int w = 0; w < workers; w++)
        if (!fork()) {
            found[w] = byte(cache);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    for (int w = 0; w < workers; w++)
        rate += 1 / found[w];
    return 1 / rate;
}

static void fork_and_join(double *fork_time, double *join_time, double *reap_time)
{
    double forks[64], joins[64], reaps[64];
    for (int w = 0; w < 64; w++) {
        double begin = now();
        pid_t child = fork();
        if (!child)
            _exit(0);
        forks[w] = now() - begin;
        waitpid(child, NULL, 0);
        joins[w] = now() - begin - forks[w];
        child = fork();
        if (!child)
            _exit(0);
        usleep(2000);
        begin = now();
        waitpid(child, NULL, 0);
        reaps[w] = now() - begin;
    }
    *fork_time = quartile(forks, 64);
    *join_time = quartile(joins, 64);
    *reap_time = quartile(reaps, 64);
}

/* The multiply-add when every worker does it at once: the mean over the workers. */
static double crowded(const int64_t *a, const int64_t *b, int workers)
{
    double *found = shared(sizeof(double) * (size_t)workers), sum = 0;
    for (int w = 0; w < workers; w++)
        if (!fork()) {
            found[w] = multiply_add(a, b, 1024);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    for (int w = 0; w < workers; w++)
        sum += found[w];
    return sum / workers;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int workers = atoi(argv[1]);
    size_t cache = (size_t)atoll(argv[2]);
    if (workers < 1 || !cache)
        return 2;
    srand(1);
    int64_t *a = elements(64 * 4096), *b = elements(64 * 4096), *out = shared(1 << 20);
    memset(out, 0, 1 << 20);
    double alone = multiply_add(a, b, 1024), forks, joins, reaps, moved = move(a, out), added = add(a);
    fork_and_join(&forks, &joins, &reaps);
    printf("multiply_add %.4f\nadd %.4f\nmove %.4f\ntap %.4f\n", alone, added, moved, tap(a, out));
    printf("scatter %.4f\n", scatter(a));
    printf("page %.4f\nline %.4f\nbyte %.6f\n", page(), line(cache), byte(cache));
    printf("fork %.1f\njoin %.1f\nreap %.1f\n", forks, joins, reaps);
    printf("byte_together %.6f\n", byte_together(cache, workers));
    printf("crowded %.4f\n", crowded(a, b, workers) / alone);
    return sink == 42;
}
