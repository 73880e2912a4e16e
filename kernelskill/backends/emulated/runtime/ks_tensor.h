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

// wmma leaves the layout of fragments open. Here a lane holds consecutive elements of the matrix, row by row.
template <class T, int Rows, int Columns, bool RowMajor, class Place> static inline uint64_t wmma_place(uint32_t element, uint32_t stride, Place base) {
  uint32_t row = element / Columns, column = element % Columns;
  return (uint64_t)base + (uint64_t)(RowMajor ? row * stride + column : column * stride + row) * sizeof(T);
}
template <class E> static inline double wmma_element(const uint32_t* registers, int index) {
  return E::get(registers[index / E::per], index % E::per);
}
// Every lane has `n` elements of A and B; C and D are `m` elements of M x N.
template <class EA, class EB, int M, int N, int K>
static inline void wmma_sums(Thread& t, const uint32_t* a, const uint32_t* b, double* sums, int32_t site) {
  const uint32_t* mine[2] = {a, b};
  const uint64_t* frame = ks_meet(t, 0xffffffffu, (uint64_t)mine, site);
  constexpr int count = M * N / 32, in_a = M * K / 32, in_b = K * N / 32;
  for (int j = 0; j < count; j++) {
    int id = (int)t.lane * count + j, row = id / N, column = id % N;
    for (int k = 0; k < K; k++) {
      int x = row * K + k, y = k * N + column;
      const uint32_t* left = ((const uint32_t* const*)frame[x / in_a])[0];
      const uint32_t* right = ((const uint32_t* const*)frame[y / in_b])[1];
      sums[j] += wmma_element<EA>(left, x % in_a) * wmma_element<EB>(right, y % in_b);
    }
  }
  ks_meet(t, 0xffffffffu, 0, site);
}
}  // namespace ks
