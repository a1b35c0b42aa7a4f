/* patches/bench/fifty.weft by hand in CUDA C++, with fast mathematics: a thread for each pixel. What varies with the time
   alone is an argument. Sliders have their first values, and `trail` and `past` remember the same. */

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
    return step_between(width, width * 0.4f, fabsf(d));
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
    float flow = noise(x * 5 + m.flow_x, y * 3 + m.flow_y) * 0.25f;
    return noise((x + flow) * 5 + m.flow_x, (y - flow) * 3 + m.flow_y);
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
    return line(radius - 0.3f - 0.1f * m.bar, 0.004f + 0.01f * m.kick);
}

static __device__ float stroke(const float *before, int width, int height, float x, float y, float aspect,
                               const Moment &m) {
    float dx = (x - 0.5f) * aspect, dy = y - 0.5f;
    float trail = fmaxf(spark(sqrtf(dx * dx + dy * dy), m), 0.94f * sample(before, width, height, x, y));
    return fmaxf(trail, sample(before, width, height, (x - 0.5f) * 0.99f + 0.5f, dy * 0.99f + 0.5f)) * 0.8f;
}

static __device__ float hue(float h) {
    float k = h - 6 * floorf(h / 6);
    return saturated(fminf(k, 4 - k));
}

static __device__ unsigned char level(float value) {
    return (unsigned char)(saturated(value) * 255 + 0.5f);
}

extern "C" __global__ void fifty(Pixel *out, const float *before, float *after, int width, int height, Moment m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height)
        return;
    constexpr float tau = 6.28318531f;
    const float tint[] = {1, 0x88 / 255.0f, 0x44 / 255.0f}, glow[] = {0.3f, 0.6f, 1};
    const float shift[] = {0, 0.15f * tau, 0.35f * tau}, hues[] = {5, 3, 1};
    float x = (i + 0.5f) / width, y = (j + 0.5f) / height, aspect = (float)width / height;
    float dx = (x - 0.5f) * aspect, dy = y - 0.5f, radius = sqrtf(dx * dx + dy * dy), angle = atan2f(dy, dx) / tau + 0.5f;

    float wave = sinf((radius * 18 + m.wave) * tau) * 0.5f + 0.5f;
    float spokes = fraction(angle * 12 + m.bar * 0.25f) < 0.5f ? 1 : 0.6f;
    float mask = step_between(0.55f, 0.15f, radius) * spokes, h = fraction(angle + m.ring) * 6;

    float here = warped(x, y, m), ridge = line(here - 0.5f, 0.08f) * 0.4f * 0.8f;
    float wedge = fabsf(fraction(angle * 5) - 0.5f) / 5 * tau + m.turn;
    float there = warped(0.5f + radius * cosf(wedge), 0.5f + radius * sinf(wedge), m);

    float bend = 0;
    for (int n = 1; n <= 4; n++)
        bend += sinf(y * 3 * (1 << n) + m.waves[n - 1]) / (1 << n);
    bend *= 0.015f + 0.01f * m.kick;
    float gx = (x + bend) * 16, gy = (y + bend) * 9;
    float cells = fmaxf(line(fraction(gx) - 0.5f, 0.06f), line(fraction(gy) - 0.5f, 0.06f)) * 0.18f;
    unsigned cell = part(floorf(gx), MULTIPLIER_X, START_X) ^ part(floorf(gy), MULTIPLIER_Y, START_Y) ^ m.blink;
    float blink = hashed(cell) > 0.92f ? m.kick * 0.5f : 0;

    float trail = fmaxf(spark(radius, m), 0.94f * before[j * width + i]);
    float past = sample(before, width, height, (x - 0.5f) * 0.99f + 0.5f, dy * 0.99f + 0.5f);
    float spread = 0.006f * radius, scan = line(fraction(y - m.bar) - 0.5f, 0.02f) * 0.2f;
    const float strokes[] = {stroke(before, width, height, x + spread, y, aspect, m), fmaxf(trail, past) * 0.8f,
                             stroke(before, width, height, x - spread, y, aspect, m)};

    float vignette = 1 - 0.7f * ((x - 0.5f) * (x - 0.5f) + dy * dy), over = saturated(radius * 1.5f);
    unsigned pixel = part(i, MULTIPLIER_X, START_X) ^ part(j, MULTIPLIER_Y, START_Y) ^ m.grain;
    float grain = (hashed(pixel) - 0.5f) * 0.04f, found[3];
#pragma unroll
    for (int c = 0; c < 3; c++) {
        float cloud = 0.5f + 0.5f * cosf(tau * (here * 0.8f + m.cloud) + shift[c]);
        float mirror = 0.5f + 0.5f * cosf(tau * (there * 0.8f + m.cloud) + shift[c]);
        float back = mirror * 0.7f + (cloud * 0.5f - mirror * 0.7f) * over;
        float ring = wave - wave * 0.75f * hue(hues[c] + h);
        float drawn = back + ring * mask * 0.7f + tint[c] * ridge + glow[c] * cells + blink;
        found[c] = (drawn + tint[c] * strokes[c] + scan) * vignette + grain;
    }
    out[j * width + i] = {level(found[0]), level(found[1]), level(found[2]), 255};
    after[j * width + i] = trail;
}
