// What Faust's class is put into: functions that C can call, and as much of Faust's own surroundings as it needs.

#include <algorithm>
#include <cmath>
#include <cstdlib>

using std::max;
using std::min;

struct Meta {
  void declare(const char *, const char *) {}
};

struct UI {
  void openVerticalBox(const char *) {}
  void closeBox() {}
};

struct dsp {
  virtual ~dsp() {}
};

<<includeIntrinsic>>
<<includeclass>>

extern "C" mydsp *begin(int rate) {
  mydsp *made = new mydsp();
  made->init(rate);
  return made;
}

// Computes the next `count` samples, block by block. `out` has `stride` samples for each channel.
extern "C" void play(mydsp *kernel, int count, int block, float *out, int stride) {
  for (int k = 0; k < count; k += block) {
    float *at[] = {out + k, out + stride + k};
    kernel->compute(min(block, count - k), nullptr, at);
  }
}

extern "C" void end(mydsp *kernel) { delete kernel; }
