/* The steps of nx_f32_conv2d_backward_fast on this computer, with software fp32, timed one by one.
 *
 *     nx_backward C_IN H W C_OUT KH KW STRIDE PAD WORKERS REPEATS [IN OUT]
 *
 * With 0 workers it is the direct loop of one process instead.
 *
 * Prints a line a step and repeat: name, wall time and time of the processor in nanoseconds; of a forked step the latter
 * is the parent's and the longest worker's. Operands are random numbers, or the elements of the file IN (input, weight,
 * dout); OUT gets dinput, dweight and dbias.
 */
#include "soft_fp32.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef int64_t i64;

static double at(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static double wall_begin, cpu_begin, *worker_cpu;

static void begin(void)
{
    wall_begin = at(CLOCK_MONOTONIC);
    cpu_begin = at(CLOCK_PROCESS_CPUTIME_ID);
}

static void end(const char *name, double workers)
{
    double wall = at(CLOCK_MONOTONIC) - wall_begin, cpu = at(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin + workers;
    printf("%s %.0f %.0f\n", name, wall, cpu);
}

static i64 *map(i64 count)
{
    void *place = mmap(NULL, 8 * (size_t)count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return place;
}

static void unmap(i64 *place, i64 count)
{
    munmap(place, 8 * (size_t)count);
}

static double matmul_t(const i64 *a, const i64 *b, i64 *out, i64 m, i64 k, i64 n, int workers)
{
    double longest = 0;
    fflush(stdout);
    if (workers > m)
        workers = (int)m;
    for (int w = 0; w < workers; w++)
        if (!fork()) {
            for (i64 i = m * w / workers; i < m * (w + 1) / workers; i++)
                for (i64 j = 0; j < n; j++) {
                    i64 sum = 0;
                    for (i64 p = 0; p < k; p++)
                        sum = soft_add(sum, soft_mul(a[i * k + p], b[j * k + p]));
                    out[i * n + j] = sum;
                }
            worker_cpu[w] = at(CLOCK_PROCESS_CPUTIME_ID);
            _exit(0);
        }
    while (wait(NULL) > 0)
        ;
    for (int w = 0; w < workers; w++)
        longest = worker_cpu[w] > longest ? worker_cpu[w] : longest;
    return longest;
}

static void transpose(i64 *out, const i64 *in, i64 rows, i64 columns)
{
    for (i64 r = 0; r < rows; r++)
        for (i64 c = 0; c < columns; c++)
            out[c * rows + r] = in[r * columns + c];
}

static void backward(const i64 *input, i64 c_in, i64 h, i64 w, const i64 *weight, i64 c_out, i64 kh_, i64 kw_,
                     i64 stride, i64 pad, const i64 *dout, i64 *dinput, i64 *dweight, i64 *dbias, int workers)
{
    i64 oh_ = (h + 2 * pad - kh_) / stride + 1, ow_ = (w + 2 * pad - kw_) / stride + 1;
    i64 k = c_in * kh_ * kw_, m = oh_ * ow_;
    begin();
    i64 *col_t = map(k * m), *dout_t = map(m * c_out), *weight_t = map(k * c_out), *dcol = map(m * k);
    end("map", 0);
    begin();
    transpose(weight_t, weight, c_out, k);
    end("transpose_weight", 0);
    begin();
    transpose(dout_t, dout, c_out, m);
    end("transpose_dout", 0);
    begin();
    for (i64 oh = 0; oh < oh_; oh++)
        for (i64 ow = 0; ow < ow_; ow++)
            for (i64 ci = 0; ci < c_in; ci++)
                for (i64 kh = 0; kh < kh_; kh++)
                    for (i64 kw = 0; kw < kw_; kw++) {
                        i64 ih = oh * stride + kh - pad, iw = ow * stride + kw - pad, v = 0;
                        if (ih >= 0 && ih < h && iw >= 0 && iw < w)
                            v = input[ci * h * w + ih * w + iw];
                        col_t[(ci * kh_ * kw_ + kh * kw_ + kw) * m + oh * ow_ + ow] = v;
                    }
    end("im2col", 0);
    begin();
    double longest = matmul_t(dout, col_t, dweight, c_out, m, k, workers);
    end("matmul_t_dweight", longest);
    begin();
    longest = matmul_t(dout_t, weight_t, dcol, m, c_out, k, workers);
    end("matmul_t_dcol", longest);
    begin();
    for (i64 co = 0; co < c_out; co++) {
        i64 sum = 0;
        for (i64 p = 0; p < m; p++)
            sum = soft_add(sum, dout[co * m + p]);
        dbias[co] = sum;
    }
    end("bias", 0);
    begin();
    for (i64 z = 0; z < c_in * h * w; z++)
        dinput[z] = 0;
    end("zero_dinput", 0);
    begin();
    for (i64 oh = 0; oh < oh_; oh++)
        for (i64 ow = 0; ow < ow_; ow++)
            for (i64 ci = 0; ci < c_in; ci++)
                for (i64 kh = 0; kh < kh_; kh++) {
                    i64 ih = oh * stride + kh - pad;
                    for (i64 kw = 0; kw < kw_ && ih >= 0 && ih < h; kw++) {
                        i64 iw = ow * stride + kw - pad;
                        if (iw >= 0 && iw < w) {
                            i64 o = ci * h * w + ih * w + iw;
                            i64 from = (oh * ow_ + ow) * k + ci * kh_ * kw_ + kh * kw_ + kw;
                            dinput[o] = soft_add(dinput[o], dcol[from]);
                        }
                    }
                }
    end("col2im", 0);
    begin();
    unmap(col_t, k * m);
    unmap(dout_t, m * c_out);
    unmap(weight_t, k * c_out);
    unmap(dcol, m * k);
    end("unmap", 0);
}

static void serial(const i64 *input, i64 c_in, i64 h, i64 w, const i64 *weight, i64 c_out, i64 kh_, i64 kw_,
                   i64 stride, i64 pad, const i64 *dout, i64 *dinput, i64 *dweight, i64 *dbias)
{
    i64 oh_ = (h + 2 * pad - kh_) / stride + 1, ow_ = (w + 2 * pad - kw_) / stride + 1, k = c_in * kh_ * kw_;
    begin();
    for (i64 i = 0; i < c_in * h * w; i++)
        dinput[i] = 0;
    for (i64 i = 0; i < c_out * k; i++)
        dweight[i] = 0;
    for (i64 i = 0; i < c_out; i++)
        dbias[i] = 0;
    end("zero_outputs", 0);
    begin();
    for (i64 co = 0; co < c_out; co++)
        for (i64 oh = 0; oh < oh_; oh++)
            for (i64 ow = 0; ow < ow_; ow++) {
                i64 g = dout[co * oh_ * ow_ + oh * ow_ + ow];
                dbias[co] = soft_add(dbias[co], g);
                for (i64 ci = 0; ci < c_in; ci++)
                    for (i64 kh = 0; kh < kh_; kh++)
                        for (i64 kw = 0; kw < kw_; kw++) {
                            i64 ih = oh * stride + kh - pad, iw = ow * stride + kw - pad;
                            if (ih < 0 || ih >= h || iw < 0 || iw >= w)
                                continue;
                            i64 o = ci * h * w + ih * w + iw, t = co * k + ci * kh_ * kw_ + kh * kw_ + kw;
                            dweight[t] = soft_add(dweight[t], soft_mul(g, input[o]));
                            dinput[o] = soft_add(dinput[o], soft_mul(g, weight[t]));
                        }
            }
    end("backward", 0);
}

static i64 *operand(i64 count, FILE *from)
{
    i64 *place = map(count);
    if (from) {
        if (fread(place, 8, (size_t)count, from) != (size_t)count) {
            fprintf(stderr, "the file of operands is too short\n");
            exit(1);
        }
        return place;
    }
    for (i64 i = 0; i < count; i++) {
        float value = (float)rand() / (float)RAND_MAX * 2 - 1;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        place[i] = bits;
    }
    return place;
}

int main(int argc, char **argv)
{
    i64 n[11] = {0};
    if (argc != 11 && argc != 13)
        return 2;
    for (int i = 1; i < 11; i++)
        n[i] = atoll(argv[i]);
    i64 c_in = n[1], h = n[2], w = n[3], c_out = n[4], kh = n[5], kw = n[6], stride = n[7], pad = n[8];
    int workers = (int)n[9];
    if (stride < 1 || workers < 0 || (h + 2 * pad - kh) / stride + 1 < 1 || (w + 2 * pad - kw) / stride + 1 < 1)
        return 2;
    i64 m = ((h + 2 * pad - kh) / stride + 1) * ((w + 2 * pad - kw) / stride + 1);
    FILE *from = argc == 13 ? fopen(argv[11], "rb") : NULL;
    if (argc == 13 && !from)
        return 2;
    i64 *input = operand(c_in * h * w, from), *weight = operand(c_out * c_in * kh * kw, from);
    i64 *dout = operand(c_out * m, from);
    i64 *dinput = map(c_in * h * w), *dweight = map(c_out * c_in * kh * kw), *dbias = map(c_out);
    worker_cpu = (double *)map(workers + 1);
    memset(dinput, 0, 8 * (size_t)(c_in * h * w));
    memset(dweight, 0, 8 * (size_t)(c_out * c_in * kh * kw));
    for (i64 r = 0; r < n[10] && !workers; r++)
        serial(input, c_in, h, w, weight, c_out, kh, kw, stride, pad, dout, dinput, dweight, dbias);
    for (i64 r = 0; r < n[10] && workers; r++)
        backward(input, c_in, h, w, weight, c_out, kh, kw, stride, pad, dout, dinput, dweight, dbias, workers);
    FILE *to = argc == 13 ? fopen(argv[12], "wb") : NULL;
    if (to) {
        fwrite(dinput, 8, (size_t)(c_in * h * w), to);
        fwrite(dweight, 8, (size_t)(c_out * c_in * kh * kw), to);
        fwrite(dbias, 8, (size_t)c_out, to);
        fclose(to);
    }
    return 0;
}
