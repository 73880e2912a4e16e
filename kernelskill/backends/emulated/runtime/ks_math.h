// Arithmetic with PTX's edge cases.
#pragma once
#include "ks_device.h"

namespace ks {

template <class D, class S> static inline D reuse(S value) {
  D result = 0;
  memcpy(&result, &value, sizeof(D) < sizeof(S) ? sizeof(D) : sizeof(S));
  return result;
}

// ---- single and double precision
static inline float flush(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
static inline double flush(double x) { return x; }
static inline float saturate(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }
static inline double saturate(double x) { return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0; }
static inline float root(float x) { return __builtin_sqrtf(x); }
static inline double root(double x) { return __builtin_sqrt(x); }
static inline float absolute(float x) { return __builtin_fabsf(x); }
static inline double absolute(double x) { return __builtin_fabs(x); }
static inline bool subnormal(double x) { return x != 0 && __builtin_fabs(x) < 0x1p-1022; }
static inline bool subnormal(float x) { return x != 0 && __builtin_fabsf(x) < 0x1p-126f; }

template <class T, bool NaN> static inline T min_float(T a, T b) {
  if (__builtin_isunordered(a, b)) return NaN ? (T)__builtin_nan("") : (a == a ? a : b);
  return a == b ? (__builtin_signbit(a) ? a : b) : (a < b ? a : b);
}
template <class T, bool NaN> static inline T max_float(T a, T b) {
  if (__builtin_isunordered(a, b)) return NaN ? (T)__builtin_nan("") : (a == a ? a : b);
  return a == b ? (__builtin_signbit(a) ? b : a) : (a > b ? a : b);
}

// Directed rounding of single precision through exact sums in double precision.
// 1: towards zero, 2: down, 3: up.
template <int R> static inline float narrow_exact(double high, double low) {
  float f = (float)high;
  double difference = (double)f - high;  // exact; its sign, then that of `low`, tells on which side f lies
  bool above = difference > 0 || (difference == 0 && low < 0);
  bool below = difference < 0 || (difference == 0 && low > 0);
  if (!__builtin_isfinite(f)) {
    if (!__builtin_isfinite(high)) return f;
    above = f > 0;
    below = !above;
  }
  bool negative = high < 0 || (high == 0 && low < 0);
  bool down = above && (R == 2 || (R == 1 && !negative));
  bool up = below && (R == 3 || (R == 1 && negative));
  uint32_t b = bits<uint32_t>(f);
  if (down) return f == 0 ? -0x1p-149f : bits<float>(f > 0 ? b - 1 : b + 1);
  if (up) return f == 0 ? 0x1p-149f : bits<float>(f > 0 ? b + 1 : b - 1);
  return f;
}
template <int R> static inline float add_rounded(float a, float b) {
  double x = a, y = b, s = x + y, t = s - x;
  return narrow_exact<R>(s, (x - (s - t)) + (y - t));
}
template <int R> static inline float sub_rounded(float a, float b) { return add_rounded<R>(a, -b); }
template <int R> static inline float mul_rounded(float a, float b) { return narrow_exact<R>((double)a * b, 0); }
template <int R> static inline float fma_rounded(float a, float b, float c) {
  double x = (double)a * b, y = c, s = x + y, t = s - x;
  return narrow_exact<R>(s, (x - (s - t)) + (y - t));
}
template <int R> static inline float div_rounded(float a, float b) {
  double q = (double)a / b, r = __builtin_fma(-q, (double)b, (double)a);
  return narrow_exact<R>(q, b < 0 ? -r : r);
}
template <int R> static inline float sqrt_rounded(float a) {
  double s = __builtin_sqrt((double)a);
  return narrow_exact<R>(s, __builtin_fma(-s, s, (double)a));
}
template <int R> static inline float narrow(double x) { return R == 0 ? (float)x : narrow_exact<R>(x, 0); }

// Directed rounding of double precision is rare: in the runtime library, with the processor's own modes.
extern "C" double ks_directed(int32_t operation, int32_t rounding, double a, double b, double c);
template <int R> static inline double add_rounded(double a, double b) { return ks_directed(0, R, a, b, 0); }
template <int R> static inline double sub_rounded(double a, double b) { return ks_directed(0, R, a, -b, 0); }
template <int R> static inline double mul_rounded(double a, double b) { return ks_directed(1, R, a, b, 0); }
template <int R> static inline double fma_rounded(double a, double b, double c) { return ks_directed(2, R, a, b, c); }
template <int R> static inline double div_rounded(double a, double b) { return ks_directed(3, R, a, b, 0); }
template <int R> static inline double sqrt_rounded(double a) { return ks_directed(4, R, a, 0, 0); }

// ---- conversions
template <int M> static inline float integral(float x) {
  return M == 0 ? __builtin_rintf(x) : M == 1 ? __builtin_truncf(x) : M == 2 ? __builtin_floorf(x) : __builtin_ceilf(x);
}
template <int M> static inline double integral(double x) {
  return M == 0 ? __builtin_rint(x) : M == 1 ? __builtin_trunc(x) : M == 2 ? __builtin_floor(x) : __builtin_ceil(x);
}
template <class T> struct Range {
  static constexpr bool is_signed = T(-1) < T(0);
  static constexpr T highest = is_signed ? (T)(((uint64_t)1 << (sizeof(T) * 8 - 1)) - 1) : (T)~(T)0;
  static constexpr T lowest = is_signed ? (T)(-highest - 1) : (T)0;
};
// Out of range: the nearest value. NaN: zero, and the lowest pattern for 64 bits.
template <class T, class F> static inline T to_integer(F x) {
  if (x != x) return sizeof(T) == 8 ? (T)((uint64_t)1 << 63) : (T)0;
  if (x >= (F)Range<T>::highest) return Range<T>::highest;
  if (x <= (F)Range<T>::lowest) return Range<T>::lowest;
  return (T)x;
}
template <class T, int R, class S> static inline T from_integer(S value) {
  T nearest = (T)value;
  __int128 back = (__int128)nearest, exact = (__int128)value;
  bool above = back > exact, below = back < exact;
  bool down = above && (R == 2 || (R == 1 && exact >= 0)), up = below && (R == 3 || (R == 1 && exact < 0));
  if (sizeof(T) == 4) {
    uint32_t b = bits<uint32_t>((float)nearest);
    if (down) return (T)bits<float>(nearest > 0 ? b - 1 : b + 1);
    if (up) return (T)bits<float>(nearest > 0 ? b + 1 : b - 1);
  } else {
    uint64_t b = bits<uint64_t>((double)nearest);
    if (down) return (T)bits<double>(nearest > 0 ? b - 1 : b + 1);
    if (up) return (T)bits<double>(nearest > 0 ? b + 1 : b - 1);
  }
  return nearest;
}
template <class T, class S> static inline T clamp_integer(S value) {
  __int128 v = value;
  return v > (__int128)Range<T>::highest ? Range<T>::highest : v < (__int128)Range<T>::lowest ? Range<T>::lowest : (T)value;
}
static inline uint32_t to_tf32(float x) {
  uint32_t b = bits<uint32_t>(x);
  return x != x ? 0x7fffffffu : (b + 0x1000u) & 0xffffe000u;
}
static inline float to_odd(double x) {  // inexact results get an odd last bit, so that a second rounding is right
  float z = narrow_exact<1>(x, 0);
  return (double)z != x && x == x ? bits<float>(bits<uint32_t>(z) | 1u) : z;
}
template <class T> static inline float to_odd(T value) { return to_odd((double)value); }

// ---- integers
template <class T> static inline T add_sat(T a, T b) {
  T r;
  return __builtin_add_overflow(a, b, &r) ? (b > 0 ? Range<T>::highest : Range<T>::lowest) : r;
}
template <class T> static inline T sub_sat(T a, T b) {
  T r;
  return __builtin_sub_overflow(a, b, &r) ? (b < 0 ? Range<T>::highest : Range<T>::lowest) : r;
}
template <class T> static inline T add_carry(T a, T b, uint32_t in, uint32_t* out) {
  unsigned __int128 r = (unsigned __int128)a + b + in;
  if (out) *out = (uint32_t)(r >> (sizeof(T) * 8)) & 1u;
  return (T)r;
}
template <class T> static inline T sub_carry(T a, T b, uint32_t in, uint32_t* out) {
  unsigned __int128 r = (unsigned __int128)a - b - in;
  if (out) *out = (uint32_t)(r >> (sizeof(T) * 8)) & 1u;
  return (T)r;
}
template <class T> static inline T mul_hi(T a, T b) { return (T)(((__int128)a * (__int128)b) >> (sizeof(T) * 8)); }
template <> inline uint64_t mul_hi(uint64_t a, uint64_t b) { return (uint64_t)(((unsigned __int128)a * b) >> 64); }
static inline int64_t low24(int32_t x) { return (int32_t)((uint32_t)x << 8) >> 8; }
static inline uint64_t low24(uint32_t x) { return x & 0xffffffu; }
template <class T> static inline T div_int(T a, T b) {
  if (b == 0) return (T)~(T)0;
  if (Range<T>::is_signed && b == (T)-1) return (T)(0 - (uint64_t)a);
  return (T)(a / b);
}
template <class T> static inline T rem_int(T a, T b) {
  if (b == 0) return a;
  if (Range<T>::is_signed && b == (T)-1) return 0;
  return (T)(a % b);
}
template <class T> static inline T min_int(T a, T b) { return a < b ? a : b; }
template <class T> static inline T max_int(T a, T b) { return a > b ? a : b; }
static inline uint32_t add_pair(uint32_t a, uint32_t b) { return (uint16_t)(a + b) | ((a >> 16) + (b >> 16)) << 16; }
template <class E> static inline uint32_t min_pair(uint32_t a, uint32_t b) {
  return (uint16_t)min_int((E)a, (E)b) | (uint32_t)(uint16_t)min_int((E)(a >> 16), (E)(b >> 16)) << 16;
}
template <class E> static inline uint32_t max_pair(uint32_t a, uint32_t b) {
  return (uint16_t)max_int((E)a, (E)b) | (uint32_t)(uint16_t)max_int((E)(a >> 16), (E)(b >> 16)) << 16;
}
template <class T> static inline T shl(T a, uint32_t n) { return n >= sizeof(T) * 8 ? (T)0 : (T)(a << n); }
template <class T> static inline T shr(T a, uint32_t n) {
  if (n >= sizeof(T) * 8) return a < 0 ? (T)-1 : (T)0;
  return (T)(a >> n);
}
static inline uint32_t count_wrap(uint32_t n) { return n & 31u; }
static inline uint32_t count_clamp(uint32_t n) { return n > 32u ? 32u : n; }
static inline uint32_t funnel_left(uint32_t a, uint32_t b, uint32_t n) {
  return (uint32_t)((((uint64_t)b << 32 | a) << n) >> 32);
}
static inline uint32_t funnel_right(uint32_t a, uint32_t b, uint32_t n) {
  return (uint32_t)(((uint64_t)b << 32 | a) >> n);
}
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  if (table & 0x01) r |= ~a & ~b & ~c;
  if (table & 0x02) r |= ~a & ~b & c;
  if (table & 0x04) r |= ~a & b & ~c;
  if (table & 0x08) r |= ~a & b & c;
  if (table & 0x10) r |= a & ~b & ~c;
  if (table & 0x20) r |= a & ~b & c;
  if (table & 0x40) r |= a & b & ~c;
  if (table & 0x80) r |= a & b & c;
  return r;
}
template <class T> static inline uint32_t popc(T a) { return (uint32_t)__builtin_popcountll((uint64_t)a); }
template <class T> static inline uint32_t clz(T a) {
  return a ? (uint32_t)__builtin_clzll((uint64_t)a) - (64 - sizeof(T) * 8) : (uint32_t)sizeof(T) * 8;
}
template <class T> static inline T brev(T a) {
  T r = 0;
  for (unsigned i = 0; i < sizeof(T) * 8; i++) r = (T)(r << 1 | (a >> i & 1));
  return r;
}
template <class T> static inline uint32_t bfind(T a, bool shifted) {
  constexpr uint32_t top = sizeof(T) * 8 - 1;
  uint64_t v = a < 0 ? ~(uint64_t)(int64_t)a : (uint64_t)a;
  if (sizeof(T) == 4) v &= 0xffffffffu;
  if (!v) return ~0u;
  uint32_t at = 63u - (uint32_t)__builtin_clzll(v);
  return shifted ? top - at : at;
}
template <class T> static inline T bfe(T a, uint32_t position, uint32_t length) {
  position &= 255u;
  length &= 255u;
  constexpr uint32_t width = sizeof(T) * 8;
  if (!length) return 0;
  bool negative = Range<T>::is_signed && (a >> (min_int(position + length - 1, width - 1)) & 1);
  uint64_t raw = sizeof(T) == 4 ? (uint64_t)(uint32_t)a : (uint64_t)a;
  uint64_t field = position >= width ? 0 : raw >> position;
  if (length < 64) field &= ((uint64_t)1 << length) - 1;
  uint32_t have = position >= width ? 0 : min_int(length, width - position);
  if (negative) field |= have >= 64 ? 0 : ~(uint64_t)0 << have;
  return (T)field;
}
template <class T> static inline T bfi(T a, T b, uint32_t position, uint32_t length) {
  position &= 255u;
  length &= 255u;
  constexpr uint32_t width = sizeof(T) * 8;
  if (position >= width || !length) return b;
  T mask = length >= width ? (T)~(T)0 : (T)(((T)1 << length) - 1);
  mask = (T)(mask << position);
  return (T)((b & ~mask) | ((a << position) & mask));
}
static inline uint32_t fns(uint32_t mask, uint32_t base, int32_t offset) {
  if (offset == 0) return mask >> (base & 31) & 1 ? base : ~0u;
  int32_t step = offset > 0 ? 1 : -1, left = offset > 0 ? offset : -offset;
  for (int32_t i = (int32_t)base; i >= 0 && i < 32; i += step)
    if (mask >> i & 1 && --left == 0) return (uint32_t)i;
  return ~0u;
}
template <class T> static inline T sad(T a, T b, uint64_t c) { return (T)((a > b ? a - b : b - a) + (T)c); }
template <class T> static inline T szext(T a, uint32_t n) {
  if (n >= 32) return a;
  if (n == 0) return 0;
  uint32_t v = (uint32_t)a & ((1u << n) - 1);
  return Range<T>::is_signed && v >> (n - 1) ? (T)(v | ~0u << n) : (T)v;
}
static inline uint32_t bmsk(uint32_t position, uint32_t length, bool clamp) {
  if (!clamp) position &= 31u, length &= 31u;
  if (position >= 32 || !length) return 0;
  return (length >= 32 ? ~0u : (1u << length) - 1) << position;
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t all = (uint64_t)b << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t selector = c >> (4 * i) & 15u;
    uint8_t byte = (uint8_t)(all >> (8 * (selector & 7)));
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    r |= (uint32_t)byte << (8 * i);
  }
  return r;
}
static inline uint32_t prmt_f4e(uint32_t a, uint32_t b, uint32_t c) {
  return (uint32_t)(((uint64_t)b << 32 | a) >> (8 * (c & 3)));
}
static inline uint32_t prmt_b4e(uint32_t a, uint32_t b, uint32_t c) {
  static const uint32_t table[4] = {0x5670, 0x6701, 0x7012, 0x0123};
  return prmt(a, b, table[c & 3]);
}
static inline uint32_t prmt_rc8(uint32_t a, uint32_t b, uint32_t c) { return prmt(a, b, 0x1111u * (c & 3)); }
static inline uint32_t prmt_rc16(uint32_t a, uint32_t b, uint32_t c) { return prmt(a, b, c & 1 ? 0x3232 : 0x1010); }
static inline uint32_t prmt_ecl(uint32_t a, uint32_t b, uint32_t c) {
  static const uint32_t table[4] = {0x3210, 0x3211, 0x3222, 0x3333};
  return prmt(a, b, table[c & 3]);
}
static inline uint32_t prmt_ecr(uint32_t a, uint32_t b, uint32_t c) {
  static const uint32_t table[4] = {0x0000, 0x1110, 0x2210, 0x3210};
  return prmt(a, b, table[c & 3]);
}
template <class A, class B> static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c) {
  for (int i = 0; i < 4; i++) c += (uint32_t)((int32_t)(A)(a >> 8 * i) * (int32_t)(B)(b >> 8 * i));
  return c;
}
template <class A, class B> static inline uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, bool high) {
  for (int i = 0; i < 2; i++) c += (uint32_t)((int32_t)(A)(a >> 16 * i) * (int32_t)(B)(b >> (8 * i + (high ? 16 : 0))));
  return c;
}
}  // namespace ks
