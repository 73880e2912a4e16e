// Exchanges between the lanes of a warp.
#pragma once
#include "ks_device.h"

namespace ks {

static inline uint32_t shuffle_from(Thread& t, uint32_t mask, uint32_t value, int32_t source, bool ok, int32_t site,
                                    bool* in_range) {
  const uint64_t* frame = ks_meet(t, mask, value, site);
  *in_range = ok;
  if (!ok || !(t.present >> source & 1)) return value;
  return (uint32_t)frame[source];
}
struct Segment {
  int32_t low, high;
  Segment(uint32_t lane, uint32_t clamp) {
    uint32_t mask = clamp >> 8 & 31u, limit = clamp & 31u;
    low = (int32_t)(lane & mask);
    high = (int32_t)((lane & mask) | (limit & ~mask));
  }
};
static inline uint32_t shuffle_up(Thread& t, uint32_t m, uint32_t v, uint32_t b, uint32_t c, int32_t site, bool* ok) {
  int32_t j = (int32_t)t.lane - (int32_t)(b & 31u);
  return shuffle_from(t, m, v, j, j >= Segment(t.lane, c).high, site, ok);
}
static inline uint32_t shuffle_down(Thread& t, uint32_t m, uint32_t v, uint32_t b, uint32_t c, int32_t site, bool* ok) {
  int32_t j = (int32_t)(t.lane + (b & 31u));
  return shuffle_from(t, m, v, j, j <= Segment(t.lane, c).high, site, ok);
}
static inline uint32_t shuffle_bfly(Thread& t, uint32_t m, uint32_t v, uint32_t b, uint32_t c, int32_t site, bool* ok) {
  int32_t j = (int32_t)(t.lane ^ (b & 31u));
  return shuffle_from(t, m, v, j, j <= Segment(t.lane, c).high, site, ok);
}
static inline uint32_t shuffle_idx(Thread& t, uint32_t m, uint32_t v, uint32_t b, uint32_t c, int32_t site, bool* ok) {
  Segment segment(t.lane, c);
  int32_t j = segment.low | (int32_t)(b & 31u & ~(c >> 8 & 31u));
  return shuffle_from(t, m, v, j, j <= segment.high, site, ok);
}
static inline uint32_t vote_ballot(Thread& t, uint32_t mask, bool p, int32_t site) {
  const uint64_t* frame = ks_meet(t, mask, p, site);
  uint32_t r = 0;
  for (uint32_t left = t.present; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    r |= (uint32_t)(frame[lane] & 1) << lane;
  }
  return r;
}
static inline bool vote_any(Thread& t, uint32_t m, bool p, int32_t site) { return vote_ballot(t, m, p, site) != 0; }
static inline bool vote_all(Thread& t, uint32_t m, bool p, int32_t site) {
  uint32_t r = vote_ballot(t, m, p, site);
  return r == t.present;
}
static inline bool vote_uni(Thread& t, uint32_t m, bool p, int32_t site) {
  uint32_t r = vote_ballot(t, m, p, site);
  return r == t.present || r == 0;
}
static inline uint32_t match_any(Thread& t, uint32_t mask, uint64_t value, int32_t site, bool* ok) {
  const uint64_t* frame = ks_meet(t, mask, value, site);
  uint32_t r = 0;
  for (uint32_t left = t.present; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    r |= (uint32_t)(frame[lane] == value) << lane;
  }
  *ok = r == t.present;
  return r;
}
static inline uint32_t match_all(Thread& t, uint32_t mask, uint64_t value, int32_t site, bool* ok) {
  uint32_t r = match_any(t, mask, value, site, ok);
  return *ok ? r : 0;
}
template <class T, class F> static inline T redux(Thread& t, uint32_t mask, T value, int32_t site, F combine) {
  uint64_t raw = 0;
  memcpy(&raw, &value, sizeof(T));
  const uint64_t* frame = ks_meet(t, mask, raw, site);
  bool first = true;
  T r = value;
  for (uint32_t left = t.present; left; left &= left - 1) {
    T other;
    memcpy(&other, &frame[__builtin_ctz(left)], sizeof(T));
    r = first ? other : combine(r, other);
    first = false;
  }
  return r;
}
#define KS_REDUX(name, expression)                                                                  \
  template <class T> static inline T redux_##name(Thread& t, uint32_t mask, T value, int32_t site) { \
    return redux<T>(t, mask, value, site, [](T a, T b) { return (T)(expression); });                \
  }
KS_REDUX(add, a + b) KS_REDUX(min, a < b ? a : b) KS_REDUX(max, a > b ? a : b)
KS_REDUX(and, a & b) KS_REDUX(or, a | b) KS_REDUX(xor, a ^ b)
#define KS_REDUX_FLOAT(name, sign)                                                                              \
  template <bool Abs, bool NaN>                                                                                 \
  static inline float redux_##name##_float(Thread& t, uint32_t mask, float value, int32_t site) {               \
    return redux<float>(t, mask, Abs ? __builtin_fabsf(value) : value, site, [](float a, float b) {             \
      if (__builtin_isunordered(a, b)) return NaN ? __builtin_nanf("") : (a == a ? a : b);                      \
      return a sign b ? a : b;                                                                                  \
    });                                                                                                         \
  }
KS_REDUX_FLOAT(min, <) KS_REDUX_FLOAT(max, >)
static inline uint32_t elect(Thread& t, uint32_t mask, int32_t site) {
  ks_meet(t, mask, 0, site);
  return (uint32_t)__builtin_ctz(t.present);
}
}  // namespace ks
