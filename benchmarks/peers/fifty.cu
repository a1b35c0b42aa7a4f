/* patches/bench/fifty.weft by hand in CUDA C++, with fast mathematics: a thread for each pixel. What varies with the time
   alone is an argument; `trail` and `past` remember the same. N(x) is a number or a slider of the patch: a constant, or what
   the benchmark puts in its place, so that it can be turned while the program runs. */

#define N(x) x

struct alignas(4) Pixel {
    unsigned char r, g, b, a;
};

struct Moment {
    float kick, bar, flow_x, flow_y, wave, ring, cloud, turn, waves[4];
    unsigned grain, blink;
};

static __device__ float saturated(float x) {
    return fminf(fmaxf(x, 0.0f), 1.0f);
}

static __device__ float fraction(float x) {
    return x - floorf(x);
}

static __device__ float step_between(float low, float high, float x) {
    float t = saturated((x - low) / (high - low));
    return t * t * (3 - 2 * t);
}

static __device__ float line(float d, float width) {
    return step_between(width, width * N(0.4f), fabsf(d));
}

static __device__ unsigned part(float whole, unsigned multiplier, unsigned start) {
    unsigned product = (unsigned)(int)whole * multiplier + start;
    return product ^ product >> FIRST_SHIFT;
}

static __device__ float hashed(unsigned parts) {
    unsigned n = parts * FIRST_MULTIPLIER;
    n = (n ^ n >> SECOND_SHIFT) * SECOND_MULTIPLIER;
    return (float)(int)(n >> 8) * 5.9604645e-08f;
}

static __device__ float noise(float x, float y) {
    float left = floorf(x), upper = floorf(y), u = x - left, v = y - upper;
    u = u * u * (3 - 2 * u), v = v * v * (3 - 2 * v);
    unsigned x0 = part(left, MULTIPLIER_X, START_X), x1 = part(left + 1, MULTIPLIER_X, START_X);
    unsigned y0 = part(upper, MULTIPLIER_Y, START_Y), y1 = part(upper + 1, MULTIPLIER_Y, START_Y);
    float above = hashed(x0 ^ y0), below = hashed(x0 ^ y1);
    above += (hashed(x1 ^ y0) - above) * u, below += (hashed(x1 ^ y1) - below) * u;
    return above + (below - above) * v;
}

static __device__ float warped(float x, float y, const Moment &m) {
    const float across = N(5.0f), down = N(3.0f), zoom = N(1.0f), bent = N(0.25f);
    float flow = noise(x * across * zoom + m.flow_x, y * down * zoom + m.flow_y) * bent;
    return noise((x + flow) * across * zoom + m.flow_x, (y - flow) * down * zoom + m.flow_y);
}

static __device__ float sample(const float *image, int width, int height, float x, float y) {
    float across = fminf(fmaxf(x * width - 0.5f, 0.0f), width - 1.0f);
    float down = fminf(fmaxf(y * height - 0.5f, 0.0f), height - 1.0f);
    int i = (int)across, j = (int)down, right = min(i + 1, width - 1);
    const float *upper = image + j * width, *lower = image + min(j + 1, height - 1) * width;
    float above = upper[i] + (upper[right] - upper[i]) * (across - i);
    float below = lower[i] + (lower[right] - lower[i]) * (across - i);
    return above + (below - above) * (down - j);
}

static __device__ float spark(float radius, const Moment &m) {
    return line(radius - N(0.3f) - N(0.1f) * m.bar, N(0.004f) + N(0.01f) * m.kick);
}

static __device__ float stroke(const float *before, int width, int height, float x, float y, float aspect,
                               const Moment &m) {
    float dx = (x - N(0.5f)) * aspect, dy = y - N(0.5f);
    float trail = fmaxf(spark(sqrtf(dx * dx + dy * dy), m), N(0.94f) * sample(before, width, height, x, y));
    float seen_x = (x - N(0.5f)) * N(0.99f) + N(0.5f), seen_y = (y - N(0.5f)) * N(0.99f) + N(0.5f);
    return fmaxf(trail, sample(before, width, height, seen_x, seen_y)) * N(0.8f);
}

static __device__ float hue(float h) {
    const float six = N(6.0f);
    float k = h - six * floorf(h / six);
    return saturated(fminf(k, N(4.0f) - k));
}

static __device__ unsigned char level(float value) {
    return (unsigned char)(saturated(value) * 255 + 0.5f);
}

extern "C" __global__ void fifty(Pixel *out, const float *before, float *after, int width, int height, Moment m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height)
        return;
    constexpr float tau = 6.28318531f;
    const float tint[] = {N(1.0f), N(0.53333333f), N(0.26666667f)}, glow[] = {N(0.3f), N(0.6f), N(1.0f)};
    const float shift[] = {0, N(0.15f) * tau, N(0.35f) * tau}, hues[] = {N(5.0f), N(3.0f), N(1.0f)};
    float x = (i + 0.5f) / width, y = (j + 0.5f) / height, aspect = (float)width / height;
    float dx = (x - N(0.5f)) * aspect, dy = y - N(0.5f), radius = sqrtf(dx * dx + dy * dy);
    float angle = atan2f(dy, dx) / tau + N(0.5f);

    float wave = sinf((radius * N(18.0f) / N(1.0f) + m.wave) * tau) * N(0.5f) + N(0.5f);
    float spokes = fraction(angle * N(12.0f) + m.bar * N(0.25f)) < N(0.5f) ? 1 : N(0.6f);
    float mask = step_between(N(0.55f), N(0.15f), radius) * spokes, h = fraction(angle + m.ring) * N(6.0f);

    float here = warped(x, y, m), ridge = line(here - N(0.5f), N(0.08f)) * N(0.4f) * N(0.8f);
    float wedge = fabsf(fraction(angle * N(5.0f)) - N(0.5f)) / N(5.0f) * tau + m.turn;
    float there = warped(N(0.5f) + radius * cosf(wedge), N(0.5f) + radius * sinf(wedge), m);

    float bend = 0;
    for (int n = 1; n <= 4; n++)
        bend += sinf(y * N(3.0f) * (1 << n) + m.waves[n - 1]) / (1 << n);
    bend *= N(0.015f) + N(0.01f) * m.kick;
    float gx = (x + bend) * N(16.0f), gy = (y + bend) * N(9.0f);
    float cells = fmaxf(line(fraction(gx) - N(0.5f), N(0.06f)), line(fraction(gy) - N(0.5f), N(0.06f))) * N(0.18f);
    unsigned cell = part(floorf(gx), MULTIPLIER_X, START_X) ^ part(floorf(gy), MULTIPLIER_Y, START_Y) ^ m.blink;
    float blink = hashed(cell) > N(0.92f) ? m.kick * N(0.5f) : 0;

    float trail = fmaxf(spark(radius, m), N(0.94f) * before[j * width + i]);
    float seen_x = (x - N(0.5f)) * N(0.99f) + N(0.5f), seen_y = (y - N(0.5f)) * N(0.99f) + N(0.5f);
    float past = sample(before, width, height, seen_x, seen_y);
    float spread = N(0.006f) * radius, scan = line(fraction(y - m.bar) - N(0.5f), N(0.02f)) * N(0.2f);
    const float strokes[] = {stroke(before, width, height, x + spread, y, aspect, m), fmaxf(trail, past) * N(0.8f),
                             stroke(before, width, height, x - spread, y, aspect, m)};

    float vignette = N(1.0f) - N(0.7f) * ((x - N(0.5f)) * (x - N(0.5f)) + (y - N(0.5f)) * (y - N(0.5f)));
    float over = saturated(radius * N(1.5f));
    unsigned pixel = part(i, MULTIPLIER_X, START_X) ^ part(j, MULTIPLIER_Y, START_Y) ^ m.grain;
    float grain = (hashed(pixel) - N(0.5f)) * N(0.04f), invert = N(0.0f), found[3];
#pragma unroll
    for (int c = 0; c < 3; c++) {
        float cloud = N(0.5f) + N(0.5f) * cosf(tau * (here * N(0.8f) + m.cloud) + shift[c]);
        float mirror = N(0.5f) + N(0.5f) * cosf(tau * (there * N(0.8f) + m.cloud) + shift[c]);
        float back = mirror * N(0.7f) + (cloud * N(0.5f) - mirror * N(0.7f)) * over;
        float ring = wave - wave * N(0.75f) * hue(hues[c] + h);
        float drawn = back + ring * mask * N(0.7f) + tint[c] * ridge + glow[c] * cells + blink;
        float toned = fminf(N(1.0f), fmaxf(0.0f, (drawn + tint[c] * strokes[c] + scan) * vignette + grain));
        found[c] = invert != 0 ? N(1.0f) - toned : toned;
    }
    out[j * width + i] = {level(found[0]), level(found[1]), level(found[2]), 255};
    after[j * width + i] = trail;
}
