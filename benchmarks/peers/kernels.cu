/* The kernels in CUDA C++, compiled with the figures of figures.py and with fast mathematics: a thread for each pixel. What
   varies with the time alone is an argument. */

struct alignas(4) Pixel {
    unsigned char r, g, b, a;
};

struct Phases {
    float of[4];
};

struct Plane {
    unsigned low, high;
    float fade;
};

struct Planes {
    Plane of[OCTAVES];
};

static __device__ unsigned char level(float value) {
    return (unsigned char)(value * 127.5f + 128);
}

extern "C" __global__ void v1(Pixel *out, int width, int height, Phases phases) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height)
        return;
    float x = (i + 0.5f) / width, y = (j + 0.5f) / height;
    out[j * width + i] = {level(sinf(x * 62.83185307f + phases.of[0])), (unsigned char)(y * 255 + 0.5f), 51, 255};
}

extern "C" __global__ void v2(Pixel *out, int width, int height, Phases phases) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height)
        return;
    float x = (i + 0.5f) / width, y = (j + 0.5f) / height;
    float d = sqrtf((x - 0.5f) * (x - 0.5f) + (y - 0.5f) * (y - 0.5f));
    float v = sinf(10 * x + phases.of[0]) + sinf(10 * y + phases.of[1]) + sinf(10 * (x + y) + phases.of[2]) +
              sinf(20 * d + phases.of[3]);
    v *= 3.14159265f;
    out[j * width + i] = {level(sinf(v + PLASMA_0)), level(sinf(v + PLASMA_1)), level(sinf(v + PLASMA_2)), 255};
}

static __device__ unsigned part(unsigned whole, unsigned multiplier, unsigned start) {
    unsigned product = whole * multiplier + start;
    return product ^ product >> FIRST_SHIFT;
}

static __device__ float corner(unsigned x, unsigned others) {
    unsigned n = (x ^ others) * FIRST_MULTIPLIER;
    n = (n ^ n >> SECOND_SHIFT) * SECOND_MULTIPLIER;
    return (float)(int)(n >> 8);
}

static __device__ float mix(float a, float b, float t) {
    return a + (b - a) * t;
}

static __device__ float noise(float x, float y, Plane z) {
    float left = floorf(x), upper = floorf(y), u = x - left, v = y - upper;
    u = u * u * (3 - 2 * u), v = v * v * (3 - 2 * v);
    unsigned i = (unsigned)(int)left, j = (unsigned)(int)upper;
    unsigned x0 = part(i, MULTIPLIER_X, START_X), x1 = part(i + 1, MULTIPLIER_X, START_X);
    unsigned y0 = part(j, MULTIPLIER_Y, START_Y), y1 = part(j + 1, MULTIPLIER_Y, START_Y);
    float a = mix(corner(x0, y0 ^ z.low), corner(x1, y0 ^ z.low), u);
    float b = mix(corner(x0, y1 ^ z.low), corner(x1, y1 ^ z.low), u);
    float c = mix(corner(x0, y0 ^ z.high), corner(x1, y0 ^ z.high), u);
    float d = mix(corner(x0, y1 ^ z.high), corner(x1, y1 ^ z.high), u);
    return mix(mix(a, b, v), mix(c, d, v), z.fade);
}

extern "C" __global__ void v3(Pixel *out, int width, int height, Planes planes) {
    constexpr float scales[] = {OCTAVE_SCALES}, shifts[] = {OCTAVE_SHIFTS}, weights[] = {OCTAVE_WEIGHTS};
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= width || j >= height)
        return;
    float x = (i + 0.5f) / width, y = (j + 0.5f) / height, total = 0;
#pragma unroll
    for (int o = 0; o < OCTAVES; o++)
        total += weights[o] * noise(x * scales[o] + shifts[o], y * scales[o] + shifts[o], planes.of[o]);
    total *= 6.28318531f;
    out[j * width + i] = {level(cosf(total + 6.28318531f * CLOUD_0)), level(cosf(total + 6.28318531f * CLOUD_1)),
                          level(cosf(total + 6.28318531f * CLOUD_2)), 255};
}
