/* The kernels in plain C, one of them at a time: compiled with -DKERNEL=1, 2 or 3 and the figures of figures.py.

   What varies with x alone is computed once a frame into tables, what varies with y alone once a row, what varies with
   the time alone once a frame in double precision. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define TAU 6.283185307179586
#define OPAQUE 0xff000000u

typedef uint32_t bits;

static inline float wave(float turns) {
    float q = 1 - 4 * fabsf(turns - rintf(turns)), s = q * q;
    return q * (SINE_0 + s * (SINE_1 + s * (SINE_2 + s * (SINE_3 + s * SINE_4))));
}

/* A wave as a level from 0 to 255: it stays in its range, so there is nothing to clamp. */
static inline bits level(float turns) {
    return (bits)(int32_t)(wave(turns) * 127.5f + 128);
}

static inline bits pack(float red, float green, float blue) {
    return level(red) | level(green) << 8 | level(blue) << 16 | OPAQUE;
}

/* The sine of an angle as a wave. */
static inline float phase(double angle) {
    double turns = angle / TAU - 0.25;
    return (float)(turns - floor(turns));
}

#if KERNEL == 1

static void draw_row(bits *restrict row, const bits *restrict column, bits green, int width) {
    for (int i = 0; i < width; i++)
        row[i] = column[i] | green;
}

void draw(bits *out, int width, int height, double time, int threads) {
    bits column[width];
    float at = phase(time);
    for (int i = 0; i < width; i++)
        column[i] = level((i + 0.5f) / width * 10 + at) | 51u << 16 | OPAQUE;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int j = 0; j < height; j++)
        draw_row(out + (long)j * width, column, (bits)((j + 0.5f) / height * 255 + 0.5f) << 8, width);
}

#elif KERNEL == 2

static void draw_row(bits *restrict row, const float *restrict across, const float *restrict sum,
                     const float *restrict square, float y, float at_y, float at_d, int width) {
    const float ten = 10 / TAU, twenty = 20 / TAU;
    float down = wave(y * ten + at_y), y_sum = y * ten, y_square = (y - 0.5f) * (y - 0.5f);
    for (int i = 0; i < width; i++) {
        float d = sqrtf(square[i] + y_square);
        float v = across[i] + down + wave(sum[i] + y_sum) + wave(d * twenty + at_d);
        row[i] = pack(v * 0.5f + (float)PLASMA_0, v * 0.5f + (float)PLASMA_1, v * 0.5f + (float)PLASMA_2);
    }
}

void draw(bits *out, int width, int height, double time, int threads) {
    const float ten = 10 / TAU, at_x = phase(time), at_y = phase(1.3 * time);
    const float at_sum = phase(0.7 * time), at_d = phase(-2 * time);
    float across[width], sum[width], square[width];
    for (int i = 0; i < width; i++) {
        float x = (i + 0.5f) / width;
        across[i] = wave(x * ten + at_x);
        sum[i] = x * ten + at_sum;
        square[i] = (x - 0.5f) * (x - 0.5f);
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int j = 0; j < height; j++)
        draw_row(out + (long)j * width, across, sum, square, (j + 0.5f) / height, at_y, at_d, width);
}

#else

static const float scale[] = {OCTAVE_SCALES}, shift[] = {OCTAVE_SHIFTS}, weight[] = {OCTAVE_WEIGHTS};
static const double scale_z[] = {OCTAVE_SCALES_Z}, shift_z[] = {OCTAVE_SHIFTS_Z};
enum { OCTAVES = sizeof weight / sizeof *weight };

/* Where a coordinate lies on its axis of the lattice: what it contributes to the hash at the points below and above,
   and how much of the point above is blended in. */
typedef struct {
    bits low, high;
    float fade;
} cell;

static inline bits part(bits whole, bits multiplier, bits start) {
    bits product = whole * multiplier + start;
    return product ^ product >> FIRST_SHIFT;
}

static inline cell find(double at, bits multiplier, bits start) {
    bits below = (bits)(int64_t)floor(at);
    float t = (float)(at - floor(at));
    return (cell){part(below, multiplier, start), part(below + 1, multiplier, start), t * t * (3 - 2 * t)};
}

static inline float mix(float a, float b, float t) {
    return a + (b - a) * t;
}

static inline float corner(bits x, bits others) {
    bits n = (x ^ others) * FIRST_MULTIPLIER;
    n = (n ^ n >> SECOND_SHIFT) * SECOND_MULTIPLIER;
    return (float)(int32_t)(n >> 8);
}

static void add_octave(float *restrict total, const bits *restrict low, const bits *restrict high,
                       const float *restrict fade, cell y, cell z, float weight, int width) {
    bits q0 = y.low ^ z.low, q1 = y.high ^ z.low, q2 = y.low ^ z.high, q3 = y.high ^ z.high;
    for (int i = 0; i < width; i++) {
        float a = mix(corner(low[i], q0), corner(high[i], q0), fade[i]);
        float b = mix(corner(low[i], q1), corner(high[i], q1), fade[i]);
        float c = mix(corner(low[i], q2), corner(high[i], q2), fade[i]);
        float d = mix(corner(low[i], q3), corner(high[i], q3), fade[i]);
        total[i] += mix(mix(a, b, y.fade), mix(c, d, y.fade), z.fade) * weight;
    }
}

static void colour_row(bits *restrict row, const float *restrict total, int width) {
    for (int i = 0; i < width; i++)
        row[i] = pack(total[i] + (float)CLOUD_0, total[i] + (float)CLOUD_1, total[i] + (float)CLOUD_2);
}

void draw(bits *out, int width, int height, double time, int threads) {
    bits low[OCTAVES][width], high[OCTAVES][width];
    float fade[OCTAVES][width];
    cell z[OCTAVES];
    for (int o = 0; o < OCTAVES; o++) {
        z[o] = find(time * scale_z[o] + shift_z[o], MULTIPLIER_Z, START_Z);
        for (int i = 0; i < width; i++) {
            cell x = find((i + 0.5f) / width * scale[o] + shift[o], MULTIPLIER_X, START_X);
            low[o][i] = x.low, high[o][i] = x.high, fade[o][i] = x.fade;
        }
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int j = 0; j < height; j++) {
        float total[width];
        memset(total, 0, sizeof total);
        for (int o = 0; o < OCTAVES; o++) {
            cell y = find((j + 0.5f) / height * scale[o] + shift[o], MULTIPLIER_Y, START_Y);
            add_octave(total, low[o], high[o], fade[o], y, z[o], weight[o], width);
        }
        colour_row(out + (long)j * width, total, width);
    }
}

#endif
