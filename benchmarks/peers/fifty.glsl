/* patches/bench/fifty.weft by hand in GLSL: drawn by a triangle over the picture, with `after` as a second target, or
   computed in tiles of TILE × TILE pixels. Formulas, and N(x), are as in fifty.cu. `moment` and `seeds` are its Moment:
   kick, bar and flow; wave, ring, cloud and turn; waves; then grain and blink. FILTER samples the trail by the card's
   filter, which knows the place between two pixels to 8 binary digits; otherwise it is in single precision, as there. */

#define N(x) x
#define TAU 6.28318531

uniform vec4 moment[3];
uniform uvec2 seeds;
uniform vec2 size;
uniform sampler2D before;

#ifdef TILE
layout(local_size_x = TILE, local_size_y = TILE) in;
layout(rgba8, binding = 0) writeonly uniform image2D picture;
layout(r32f, binding = 1) writeonly uniform image2D after;
#else
layout(location = 0) out vec4 picture;
layout(location = 1) out float after;
#endif

float line(float d, float width) {
    return 1 - smoothstep(width * N(0.4f), width, abs(d));
}

uvec2 parts(float whole, uint multiplier, uint start) {
    int first = int(whole);
    uvec2 product = uvec2(first, first + 1) * multiplier + start;
    return product ^ product >> FIRST_SHIFT;
}

vec4 hashed(uvec4 parts) {
    uvec4 n = parts * FIRST_MULTIPLIER;
    n = (n ^ n >> SECOND_SHIFT) * SECOND_MULTIPLIER;
    return vec4(ivec4(n >> 8)) * 5.9604645e-08;
}

float hashed(vec2 whole, uint seed) {
    uint x = parts(whole.x, MULTIPLIER_X, START_X).x, y = parts(whole.y, MULTIPLIER_Y, START_Y).x;
    return hashed(uvec4(x ^ y ^ seed)).x;
}

float noise(vec2 at) {
    vec2 whole = floor(at), t = at - whole;
    t = t * t * (3 - 2 * t);
    uvec2 x = parts(whole.x, MULTIPLIER_X, START_X), y = parts(whole.y, MULTIPLIER_Y, START_Y);
    vec4 corners = hashed(uvec4(x.x ^ y, x.y ^ y));
    vec2 edges = mix(corners.xy, corners.zw, t.x);
    return mix(edges.x, edges.y, t.y);
}

float warped(vec2 at) {
    vec2 scale = vec2(N(5.0f), N(3.0f)) * N(1.0f), flow = moment[0].zw;
    float bent = noise(at * scale + flow) * N(0.25f);
    return noise((at + vec2(bent, -bent)) * scale + flow);
}

float sampled(vec2 at) {
#ifdef FILTER
    return textureLod(before, at, 0).r;
#else
    vec2 place = at * size - 0.5, whole = floor(place), t = place - whole;
    vec4 four = textureGather(before, (whole + 1) / size);
    vec2 edges = mix(four.wx, four.zy, t.x);
    return mix(edges.x, edges.y, t.y);
#endif
}

vec2 from_middle(vec2 at) {
    return (at - vec2(N(0.5f), N(0.5f))) * vec2(size.x / size.y, 1);
}

vec2 nearer(vec2 at) {
    return (at - N(0.5f)) * N(0.99f) + N(0.5f);
}

float spark(float radius) {
    return line(radius - N(0.3f) - N(0.1f) * moment[0].y, N(0.004f) + N(0.01f) * moment[0].x);
}

float stroke(vec2 at) {
    float trail = max(spark(length(from_middle(at))), N(0.94f) * sampled(at));
    return max(trail, sampled(nearer(at))) * N(0.8f);
}

vec3 cloud(float height) {
    vec3 shift = vec3(0, N(0.15f), N(0.35f)) * TAU;
    return N(0.5f) + N(0.5f) * cos(TAU * (height * N(0.8f) + moment[1].z) + shift);
}

vec3 shaded(ivec2 pixel, out float trail) {
    float kick = moment[0].x, bar = moment[0].y;
    vec3 tint = vec3(N(1.0f), N(0.53333333f), N(0.26666667f)), glow = vec3(N(0.3f), N(0.6f), N(1.0f));
    vec2 at = (vec2(pixel) + 0.5) / size, d = from_middle(at);
    float radius = length(d), angle = atan(d.y, d.x) / TAU + N(0.5f);

    float wave = sin((radius * N(18.0f) / N(1.0f) + moment[1].x) * TAU) * N(0.5f) + N(0.5f);
    float spokes = fract(angle * N(12.0f) + bar * N(0.25f)) < N(0.5f) ? 1.0 : N(0.6f);
    float mask = (1 - smoothstep(N(0.15f), N(0.55f), radius)) * spokes;
    vec3 k = mod(vec3(N(5.0f), N(3.0f), N(1.0f)) + fract(angle + moment[1].y) * N(6.0f), N(6.0f));
    vec3 ring = wave - wave * N(0.75f) * clamp(min(k, N(4.0f) - k), 0, 1);

    float here = warped(at), ridge = line(here - N(0.5f), N(0.08f)) * N(0.4f) * N(0.8f);
    float wedge = abs(fract(angle * N(5.0f)) - N(0.5f)) / N(5.0f) * TAU + moment[1].w;
    float there = warped(N(0.5f) + radius * vec2(cos(wedge), sin(wedge)));

    vec4 powers = vec4(2, 4, 8, 16);
    float bend = dot(sin(at.y * N(3.0f) * powers + moment[2]), 1 / powers) * (N(0.015f) + N(0.01f) * kick);
    vec2 grid = (at + bend) * vec2(N(16.0f), N(9.0f)), g = fract(grid) - N(0.5f);
    float cells = max(line(g.x, N(0.06f)), line(g.y, N(0.06f))) * N(0.18f);
    float blink = hashed(floor(grid), seeds.y) > N(0.92f) ? kick * N(0.5f) : 0.0;

    trail = max(spark(radius), N(0.94f) * texelFetch(before, pixel, 0).r);
    float past = sampled(nearer(at)), scan = line(fract(at.y - bar) - N(0.5f), N(0.02f)) * N(0.2f);
    vec2 spread = vec2(N(0.006f) * radius, 0);
    vec3 strokes = vec3(stroke(at + spread), max(trail, past) * N(0.8f), stroke(at - spread));

    vec3 back = mix(cloud(there) * N(0.7f), cloud(here) * N(0.5f), clamp(radius * N(1.5f), 0, 1));
    vec3 drawn = back + ring * mask * N(0.7f) + tint * ridge + glow * cells + blink;
    vec2 off = at - N(0.5f);
    float vignette = N(1.0f) - N(0.7f) * dot(off, off), grain = (hashed(vec2(pixel), seeds.x) - N(0.5f)) * N(0.04f);
    vec3 toned = clamp((drawn + tint * strokes + scan) * vignette + grain, 0, N(1.0f));
    return N(0.0f) != 0 ? N(1.0f) - toned : toned;
}

void main() {
    float trail;
#ifdef TILE
    ivec2 pixel = ivec2(gl_GlobalInvocationID.xy);
    if (any(greaterThanEqual(pixel, ivec2(size))))
        return;
    imageStore(picture, pixel, vec4(shaded(pixel, trail), 1));
    imageStore(after, pixel, vec4(trail));
#else
    picture = vec4(shaded(ivec2(gl_FragCoord.xy), trail), 1);
    after = trail;
#endif
}
