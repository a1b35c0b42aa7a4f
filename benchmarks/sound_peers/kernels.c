// A kernel by hand, in blocks. Phases are kept in double precision, and reduced to a turn before the sine is taken.
//
// Defined from outside: KERNEL (1, 2 or 3), RATE, BLOCK, LANES, the polynomial SINE_0 … SINE_4 (see figures.py), and
// TURNED: whether sines whose phase grows evenly follow from those before them, or each is taken for itself.

#include <math.h>

#define TURNS_OF_A_RADIAN 0.15915494309189535

typedef double Vector __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double))));

// The sine of an angle in turns.
static inline float sine(double turns) {
  turns -= 0.25;
  float q = 1 - 4 * fabsf((float)(turns - rint(turns)));
  float s = q * q;
  return q * (SINE_0 + s * (SINE_1 + s * (SINE_2 + s * (SINE_3 + s * SINE_4))));
}

static inline double exact_sine(double turns) {
  turns -= 0.25;
  double q = 1 - 4 * fabs(turns - rint(turns));
  double s = q * q;
  return q * ((double)SINE_0 + s * (SINE_1 + s * (SINE_2 + s * (SINE_3 + s * SINE_4))));
}

// A sine at the samples of a block, a vector of them at a time: each follows from the two before it.
typedef struct {
  Vector now, next;
  double turn;
} Turning;

static inline Turning turning(double frequency, double turns, double at) {
  double both[2 * LANES];
  for (int k = 0; k < 2 * LANES; k++) both[k] = exact_sine((at + k) / RATE * frequency + turns);
  Turning made;
  __builtin_memcpy(&made.now, both, sizeof made.now);
  __builtin_memcpy(&made.next, both + LANES, sizeof made.next);
  made.turn = 2 * cos(2 * M_PI * frequency * LANES / RATE);
  return made;
}

static inline Vector turn(Turning *wave) {
  Vector now = wave->now;
  wave->now = wave->next;
  wave->next = wave->turn * wave->now - now;
  return now;
}

static inline void add(double *line, Vector more) {
  Vector *at = (Vector *)line;
  *at += more;
}

#if KERNEL == 1

static void block(double first, int count, float *left, float *right, double *state) {
#if TURNED
  double l[BLOCK] = {0}, r[BLOCK] = {0};
#else
  float l[BLOCK] = {0}, r[BLOCK] = {0};
#endif
  for (int i = 0; i < 64; i++) {
    double tones = 55.0 * (i + 1), levels = 0.1 + 0.013 * i;
    double pan = (i % 8) / 7.0, gain = 0.1 / (i + 1), to_left = (1 - pan) * gain, to_right = pan * gain;
#if TURNED
    Turning tone = turning(tones, 0, first), level = turning(levels, i * TURNS_OF_A_RADIAN, first);
    for (int k = 0; k < count; k += LANES) {
      Vector each = turn(&tone) * (turn(&level) * 0.5 + 0.5);
      add(l + k, each * to_left);
      add(r + k, each * to_right);
    }
#else
    for (int k = 0; k < count; k++) {
      double t = (first + k) * (1 / RATE);
      float each = sine(t * tones) * (sine(t * levels + i * TURNS_OF_A_RADIAN) * 0.5f + 0.5f);
      l[k] += each * (float)to_left;
      r[k] += each * (float)to_right;
    }
#endif
  }
  for (int k = 0; k < count; k++) left[k] = l[k], right[k] = r[k];
}

#elif KERNEL == 2

static void block(double first, int count, float *left, float *right, double *state) {
  double bend[BLOCK];
  float tone[BLOCK];
#if TURNED
  Turning wave = turning(110, 0, first);
  for (int k = 0; k < count; k += LANES) *(Vector *)(bend + k) = turn(&wave) * (3 * TURNS_OF_A_RADIAN);
#else
  for (int k = 0; k < count; k++) bend[k] = sine((first + k) * (1 / RATE) * 110) * (3 * TURNS_OF_A_RADIAN);
#endif
  for (int k = 0; k < count; k++) tone[k] = sine((first + k) * (1 / RATE) * 220 + bend[k]);
  double soft = *state;
  for (int k = 0; k < count; k++) left[k] = soft = 0.9 * soft + 0.1 * tone[k];
  *state = soft;
}

#else

static void block(double first, int count, float *left, float *right, double *state) {
  double frequency = 100;
#if TURNED
  double all[BLOCK] = {0};
  for (int i = 0; i < 200; i++, frequency *= 1.01) {
    Turning wave = turning(frequency, 0, first);
    for (int k = 0; k < count; k += LANES) add(all + k, turn(&wave));
  }
#else
  float all[BLOCK] = {0};
  for (int i = 0; i < 200; i++, frequency *= 1.01)
    for (int k = 0; k < count; k++) all[k] += sine((first + k) * (1 / RATE) * frequency);
#endif
  for (int k = 0; k < count; k++) left[k] = all[k] * (1 / 200.0);
}

#endif

// Computes `count` samples from `first` on. `out` has `stride` samples for each channel.
void play(long first, int count, float *out, int stride, double *state) {
  for (int k = 0; k < count; k += BLOCK) {
    int some = count - k < BLOCK ? count - k : BLOCK;
    block(first + k, some, out + k, out + stride + k, state);
  }
}
