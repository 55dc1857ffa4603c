/* Software fp32 on 8-byte elements: the low 32 bits of an element are the bits of an IEEE 754 single.
 *
 * Rounding is to nearest even, with denormals, infinities and one quiet NaN. Both operations are calls that are
 * not inlined, as a program without floating-point instructions makes them.
 */
#ifndef TILESIM_SOFT_FP32_H
#define TILESIM_SOFT_FP32_H

#include <stdint.h>

#define CALL __attribute__((noinline)) static
#define SOFT_NAN 0x7fc00000u
#define SOFT_INF 0x7f800000u

/* A significand of 24 bits with its leading one, and the biased exponent that goes with it (below 1: a denormal). */
static inline uint32_t soft_unpack(uint32_t bits, int *exponent)
{
    uint32_t significand = bits & 0x7fffffu;
    *exponent = (int)(bits >> 23 & 0xffu);
    if (*exponent)
        return significand | 0x800000u;
    int shift = __builtin_clz(significand) - 8;
    *exponent = 1 - shift;
    return significand << shift;
}

/* Round `wide`, whose leading one is bit 26 (three bits below the last place), and put the parts together. */
static inline uint32_t soft_pack(uint32_t sign, int exponent, uint32_t wide)
{
    if (exponent >= 255)
        return sign | SOFT_INF;
    if (exponent < 1) {
        int shift = 1 - exponent;
        wide = shift > 27 ? (wide != 0) : wide >> shift | ((wide & ((1u << shift) - 1)) != 0);
        exponent = 0;
    } else {
        exponent -= 1;
    }
    uint32_t rest = wide & 7u, significand = wide >> 3;
    significand += rest > 4 || (rest == 4 && (significand & 1));
    return sign | (((uint32_t)exponent << 23) + significand);
}

CALL int64_t soft_mul(int64_t x, int64_t y)
{
    uint32_t a = (uint32_t)x, b = (uint32_t)y, sign = (a ^ b) & 0x80000000u;
    a &= 0x7fffffffu;
    b &= 0x7fffffffu;
    if (a >= SOFT_INF || b >= SOFT_INF)
        return a > SOFT_INF || b > SOFT_INF || !a || !b ? SOFT_NAN : sign | SOFT_INF;
    if (!a || !b)
        return sign;
    int ea, eb;
    uint64_t product = (uint64_t)soft_unpack(a, &ea) * soft_unpack(b, &eb);
    int exponent = ea + eb - 127, shift = 20;
    if (product >> 47) {
        shift = 21;
        exponent += 1;
    }
    uint32_t wide = (uint32_t)(product >> shift) | ((product & ((1u << shift) - 1)) != 0);
    return soft_pack(sign, exponent, wide);
}

CALL int64_t soft_add(int64_t x, int64_t y)
{
    uint32_t a = (uint32_t)x, b = (uint32_t)y;
    if ((a & 0x7fffffffu) < (b & 0x7fffffffu)) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    uint32_t sign = a & 0x80000000u, differs = (a ^ b) & 0x80000000u;
    a &= 0x7fffffffu;
    b &= 0x7fffffffu;
    if (a >= SOFT_INF)
        return a > SOFT_INF || (b == SOFT_INF && differs) ? SOFT_NAN : sign | SOFT_INF;
    if (!b) {
        if (!a && differs)
            return 0;
        return sign | a;
    }
    int ea, eb;
    uint32_t wide = soft_unpack(a, &ea) << 3, small = soft_unpack(b, &eb) << 3;
    int shift = ea - eb;
    small = shift > 27 ? 1 : small >> shift | ((small & ((1u << shift) - 1)) != 0);
    if (!differs) {
        wide += small;
        if (wide >> 27) {
            wide = wide >> 1 | (wide & 1);
            ea += 1;
        }
        return soft_pack(sign, ea, wide);
    }
    wide -= small;
    if (!wide)
        return 0;
    int up = __builtin_clz(wide) - 5;
    return soft_pack(sign, ea - up, wide << up);
}

#endif
