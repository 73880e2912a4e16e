// Matrix instructions: lanes show one another their fragments, compute their own results, and meet again.
#pragma once
#include "ks_half.h"

namespace ks {

// Element formats of fragments: how many fit a 32-bit register, and their value.
struct ElementF16 { static constexpr int per = 2; static double get(uint32_t r, int e) { return F16::widen((uint16_t)(r >> 16 * e)); } };
struct ElementBf16 { static constexpr int per = 2; static double get(uint32_t r, int e) { return Bf16::widen((uint16_t)(r >> 16 * e)); } };
struct ElementTf32 { static constexpr int per = 1; static double get(uint32_t r, int) { return bits<float>(r & 0xffffe000u); } };
struct ElementS8 { static constexpr int per = 4; static double get(uint32_t r, int e) { return (int8_t)(r >> 8 * e); } };
struct ElementU8 { static constexpr int per = 4; static double get(uint32_t r, int e) { return (uint8_t)(r >> 8 * e); } };

struct Fragments { uint32_t a[8], b[4]; };

// m16n8kK: A row by row, B column by column. `sums` gets the four sums of this lane on top of what it holds.
template <class A, class B, int K> static inline void mma_sums(Thread& t, const Fragments& mine, double* sums, int32_t site) {
  const uint64_t* frame = ks_meet(t, 0xffffffffu, (uint64_t)&mine, site);
  uint32_t group = t.lane >> 2, inside = t.lane & 3;
  for (int part = 0; part < 4; part++) {
    int row = (int)group + 8 * (part >> 1), column = (int)inside * 2 + (part & 1);
    for (int k = 0; k < K; k++) {
      int step = 4 * A::per, half = k / step, lane = k % step / A::per, e = k % A::per;
      const Fragments* left = (const Fragments*)frame[(row & 7) * 4 + lane];
      const Fragments* right = (const Fragments*)frame[column * 4 + lane];
      sums[part] += A::get(left->a[half * 2 + (row >> 3)], e) * B::get(right->b[half], e);
    }
  }
  ks_meet(t, 0xffffffffu, 0, site);
}
// m8n8k4 in double precision.
static inline void mma_f64(Thread& t, double a, double b, double* c, int32_t site) {
  double mine[2] = {a, b};
  const uint64_t* frame = ks_meet(t, 0xffffffffu, (uint64_t)mine, site);
  uint32_t group = t.lane >> 2, inside = t.lane & 3;
  for (int part = 0; part < 2; part++)
    for (int k = 0; k < 4; k++)
      c[part] = __builtin_fma(((const double*)frame[group * 4 + k])[0], ((const double*)frame[(inside * 2 + part) * 4 + k])[1], c[part]);
  ks_meet(t, 0xffffffffu, 0, site);
}

template <int N> static inline void load_matrix(Thread& t, uint64_t address, bool transposed, uint32_t* out, int32_t site) {
  uint64_t row = t.lane < N * 8 ? (uint64_t)shared<16, Access::read>(t, address, site) : 0;
  const uint64_t* frame = ks_meet(t, 0xffffffffu, row, site);
  for (int i = 0; i < N; i++) {
    uint32_t v;
    if (!transposed) {
      v = get<uint32_t>((const uint8_t*)frame[i * 8 + (t.lane >> 2)], t.lane & 3);
    } else {
      uint32_t first = (t.lane & 3) * 2, column = t.lane >> 2;
      v = both(get<uint16_t>((const uint8_t*)frame[i * 8 + first], column), get<uint16_t>((const uint8_t*)frame[i * 8 + first + 1], column));
    }
    out[i] = v;
  }
  ks_meet(t, 0xffffffffu, 0, site);
}
template <int N> static inline void load_matrix_store(Thread& t, uint64_t address, bool transposed, const uint32_t* in, int32_t site) {
  uint64_t row = t.lane < N * 8 ? (uint64_t)shared<16, Access::write>(t, address, site) : 0;
  const uint64_t* frame = ks_meet(t, 0xffffffffu, row, site);
  for (int i = 0; i < N; i++) {
    if (!transposed) {
      put<uint32_t>((uint8_t*)frame[i * 8 + (t.lane >> 2)], t.lane & 3, in[i]);
    } else {
      uint32_t first = (t.lane & 3) * 2, column = t.lane >> 2;
      put<uint16_t>((uint8_t*)frame[i * 8 + first], column, low(in[i]));
      put<uint16_t>((uint8_t*)frame[i * 8 + first + 1], column, high(in[i]));
    }
  }
  ks_meet(t, 0xffffffffu, 0, site);
}

// wmma leaves the layout of fragments open. Here it is as the hardware has it, so that accesses are what they are there:
// eight lanes along the slow dimension, four along the fast one, each with Group neighbours, and that over and over.
template <int Slow, int Fast, int Group> struct WmmaLayout {
  static constexpr int down = Slow / 8;
  static inline int lane(int slow, int fast) { return slow % 8 * 4 + fast / Group % 4; }
  static inline int index(int slow, int fast) { return (fast / (4 * Group) * down + slow / 8) * Group + fast % Group; }
  static inline int slow(int lane, int index) { return index / Group % down * 8 + lane / 4; }
  static inline int fast(int lane, int index) { return index / Group / down * 4 * Group + lane % 4 * Group + index % Group; }
};
// Where an element of a lane lies; `Strided`: neighbours along the fast dimension are neighbours in memory.
template <class T, class Layout, bool Strided, class Place>
static inline uint64_t wmma_place(const Thread& t, uint32_t index, uint32_t stride, Place base) {
  uint32_t slow = Layout::slow(t.lane, index), fast = Layout::fast(t.lane, index);
  return (uint64_t)base + (uint64_t)(Strided ? slow * stride + fast : fast * stride + slow) * sizeof(T);
}
template <class E> static inline double wmma_element(const uint32_t* registers, int index) {
  return E::get(registers[index / E::per], index % E::per);
}
// A and B lie as they were loaded: their fast dimension is the one that was contiguous in memory.
template <class EA, class EB, int M, int N, int K, class LA, bool ARows, class LB, bool BRows, class LC>
static inline void wmma_sums(Thread& t, const uint32_t* a, const uint32_t* b, double* sums, int32_t site) {
  const uint32_t* mine[2] = {a, b};
  const uint64_t* frame = ks_meet(t, 0xffffffffu, (uint64_t)mine, site);
  constexpr int count = M * N / 32;
  for (int j = 0; j < count; j++) {
    int row = LC::slow(t.lane, j), column = LC::fast(t.lane, j);
    for (int k = 0; k < K; k++) {
      int as = ARows ? row : k, af = ARows ? k : row, bs = BRows ? k : column, bf = BRows ? column : k;
      const uint32_t* left = ((const uint32_t* const*)frame[LA::lane(as, af)])[0];
      const uint32_t* right = ((const uint32_t* const*)frame[LB::lane(bs, bf)])[1];
      sums[j] += wmma_element<EA>(left, LA::index(as, af)) * wmma_element<EB>(right, LB::index(bs, bf));
    }
  }
  ks_meet(t, 0xffffffffu, 0, site);
}
}  // namespace ks
