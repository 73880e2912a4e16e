// Half formats: values are held as bits and computed in single precision.
#pragma once
#include "ks_math.h"

namespace ks {

// Round bits of a wider significand: `cut` low bits go away. 0 nearest even, 1 to zero, 2 down, 3 up.
static inline uint64_t round_bits(uint64_t value, uint32_t cut, int rounding, bool negative) {
  if (!cut) return value;
  if (cut > 62) return (rounding == 2 && negative && value) || (rounding == 3 && !negative && value);
  uint64_t kept = value >> cut, rest = value & (((uint64_t)1 << cut) - 1), half = (uint64_t)1 << (cut - 1);
  bool up = rounding == 0   ? rest > half || (rest == half && (kept & 1))
            : rounding == 1 ? false
            : rounding == 2 ? negative && rest
                            : !negative && rest;
  return kept + up;
}

struct F16 {
  static inline float widen(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    if (rest >= 0x7c00) return bits<float>(sign | 0x7f800000u | (rest & 0x3ff) << 13);
    float scaled = bits<float>(rest << 13) * 0x1p112f;
    return bits<float>(bits<uint32_t>(scaled) | sign);
  }
  // Flags: bits 0 and 1 the rounding, 4 relu, 8 saturation to the largest finite value.
  template <int Flags> static inline uint16_t narrow(float x) {
    constexpr int rounding = Flags & 3;
    uint32_t b = bits<uint32_t>(x), magnitude = b & 0x7fffffffu;
    bool negative = b >> 31;
    if ((Flags & 4) && !(x > 0) && x == x) return 0;
    if (magnitude > 0x7f800000u) return 0x7fff;
    uint16_t sign = negative ? 0x8000 : 0;
    uint32_t result;
    if (magnitude == 0x7f800000u) {
      result = 0x7c00;
    } else if (magnitude >= 0x38800000u) {
      result = (uint32_t)round_bits(magnitude - 0x38000000u, 13, rounding, negative);
      if (result > 0x7c00) result = 0x7c00;
      bool capped = rounding == 1 || (rounding == 2 && !negative) || (rounding == 3 && negative);
      if (result == 0x7c00 && capped) result = 0x7bff;
    } else {
      uint32_t exponent = magnitude >> 23;
      uint64_t significand = exponent ? (magnitude & 0x7fffffu) | 0x800000u : magnitude & 0x7fffffu;
      result = (uint32_t)round_bits(significand, 126 - (exponent ? exponent : 1), rounding, negative);
    }
    if ((Flags & 8) && result == 0x7c00) result = 0x7bff;
    return (uint16_t)(sign | result);
  }
};

struct Bf16 {
  static inline float widen(uint16_t h) { return bits<float>((uint32_t)h << 16); }
  template <int Flags> static inline uint16_t narrow(float x) {
    uint32_t b = bits<uint32_t>(x);
    if ((Flags & 4) && !(x > 0) && x == x) return 0;
    if (x != x) return 0x7fff;
    bool negative = b >> 31;
    uint32_t result = (uint32_t)round_bits(b & 0x7fffffffu, 16, Flags & 3, negative);
    if ((b & 0x7fffffffu) == 0x7f800000u) result = 0x7f80;
    if ((Flags & 8) && result == 0x7f80) result = 0x7f7f;
    return (uint16_t)((negative ? 0x8000 : 0) | result);
  }
};

// Flags of arithmetic: 1 ftz, 2 saturation to 0..1, 4 relu, 8 NaN wins.
template <class H, int Flags> static inline uint16_t half_done(float x) {
  if (Flags & 2) x = saturate(x);
  if ((Flags & 4) && x <= 0) x = 0;
  return H::template narrow<0>(x);
}
// The sum of two halves is exact in double precision, so one odd rounding keeps the second one right.
template <class H, int Flags> static inline uint16_t half_add_one(uint16_t a, uint16_t b) {
  return half_done<H, Flags>(to_odd((double)H::widen(a) + (double)H::widen(b)));
}
template <class H, int Flags> static inline uint16_t half_sub_one(uint16_t a, uint16_t b) {
  return half_done<H, Flags>(to_odd((double)H::widen(a) - (double)H::widen(b)));
}
template <class H, int Flags> static inline uint16_t half_mul_one(uint16_t a, uint16_t b) {
  return half_done<H, Flags>(to_odd((double)H::widen(a) * (double)H::widen(b)));
}
template <class H, int Flags> static inline uint16_t half_fma_one(uint16_t a, uint16_t b, uint16_t c) {
  return half_done<H, Flags>(to_odd((double)H::widen(a) * (double)H::widen(b) + (double)H::widen(c)));
}
template <class H, int Flags> static inline uint16_t half_min_one(uint16_t a, uint16_t b) {
  return H::template narrow<0>(min_float<float, (Flags & 8) != 0>(H::widen(a), H::widen(b)));
}
template <class H, int Flags> static inline uint16_t half_max_one(uint16_t a, uint16_t b) {
  return H::template narrow<0>(max_float<float, (Flags & 8) != 0>(H::widen(a), H::widen(b)));
}
template <class H, int Flags> static inline uint16_t half_neg_one(uint16_t a) { return a ^ 0x8000; }
template <class H, int Flags> static inline uint16_t half_abs_one(uint16_t a) { return a & 0x7fff; }
template <class H, int Flags> static inline uint16_t half_ex2_one(uint16_t a) {
  return H::template narrow<0>(__builtin_exp2f(H::widen(a)));
}
template <class H, int Flags> static inline uint16_t half_tanh_one(uint16_t a) {
  return H::template narrow<0>(__builtin_tanhf(H::widen(a)));
}
static inline uint16_t low(uint32_t x) { return (uint16_t)x; }
static inline uint16_t high(uint32_t x) { return (uint16_t)(x >> 16); }
static inline uint32_t both(uint16_t low_, uint16_t high_) { return (uint32_t)high_ << 16 | low_; }
#define KS_PAIR2(name)                                                                                \
  template <class H, int F> static inline uint32_t half_##name##_pair(uint32_t a, uint32_t b) {       \
    return both(half_##name##_one<H, F>(low(a), low(b)), half_##name##_one<H, F>(high(a), high(b)));  \
  }
#define KS_PAIR1(name)                                                                                \
  template <class H, int F> static inline uint32_t half_##name##_pair(uint32_t a) {                   \
    return both(half_##name##_one<H, F>(low(a)), half_##name##_one<H, F>(high(a)));                   \
  }
KS_PAIR2(add) KS_PAIR2(sub) KS_PAIR2(mul) KS_PAIR2(min) KS_PAIR2(max)
KS_PAIR1(neg) KS_PAIR1(abs) KS_PAIR1(ex2) KS_PAIR1(tanh)
template <class H, int F> static inline uint32_t half_fma_pair(uint32_t a, uint32_t b, uint32_t c) {
  return both(half_fma_one<H, F>(low(a), low(b), low(c)), half_fma_one<H, F>(high(a), high(b), high(c)));
}

#define KS_F32X2(name, expression)                                                     \
  static inline uint64_t f32x2_##name(uint64_t a, uint64_t b, uint64_t c = 0) {        \
    uint64_t r = 0;                                                                    \
    for (int i = 0; i < 64; i += 32) {                                                 \
      float x = bits<float>((uint32_t)(a >> i)), y = bits<float>((uint32_t)(b >> i));  \
      float z = bits<float>((uint32_t)(c >> i));                                       \
      (void)z;                                                                         \
      r |= (uint64_t)bits<uint32_t>(expression) << i;                                  \
    }                                                                                  \
    return r;                                                                          \
  }
KS_F32X2(add, x + y) KS_F32X2(sub, x - y) KS_F32X2(mul, x * y) KS_F32X2(fma, __builtin_fmaf(x, y, z))

// Eight-bit formats, converted with saturation to the largest finite value.
template <int Exponent, int Mantissa, int Bias, int Largest, bool Infinity> struct Fp8 {
  static inline float widen(uint8_t v) {
    uint32_t magnitude = v & 0x7f, exponent = magnitude >> Mantissa, fraction = magnitude & ((1u << Mantissa) - 1);
    float sign = v & 0x80 ? -1.0f : 1.0f;
    if (!Infinity && magnitude == 0x7f) return __builtin_nanf("");
    if (Infinity && exponent == (1u << Exponent) - 1) return fraction ? __builtin_nanf("") : sign * __builtin_inff();
    float value = exponent ? __builtin_ldexpf((float)(fraction | 1u << Mantissa), (int)exponent - Bias - Mantissa)
                           : __builtin_ldexpf((float)fraction, 1 - Bias - Mantissa);
    return sign * value;
  }
  static inline uint8_t narrow(float x) {
    if (x != x) return 0x7f;
    uint32_t b = bits<uint32_t>(x);
    uint8_t sign = b >> 31 ? 0x80 : 0;
    int32_t exponent = (int32_t)(b >> 23 & 255) - 127;
    uint64_t significand = (b & 0x7fffff) | 0x800000;
    if ((b & 0x7fffffff) == 0) return sign;
    uint64_t result;
    if (exponent < 1 - Bias)
      result = round_bits(significand, (uint32_t)(23 - Mantissa + (1 - Bias - exponent)), 0, false);
    else
      result = round_bits(((uint64_t)(exponent + Bias - 1) << 23) + significand, 23 - Mantissa, 0, false);
    return (uint8_t)(sign | (result > Largest ? Largest : result));
  }
};
using E4m3 = Fp8<4, 3, 7, 0x7e, false>;
using E5m2 = Fp8<5, 2, 15, 0x7b, true>;
template <class T> static inline uint16_t to_fp8(float high_, float low_) {
  return (uint16_t)(T::narrow(high_) << 8 | T::narrow(low_));
}
template <class T> static inline uint16_t pair_to_fp8(uint32_t v) {
  return to_fp8<T>(F16::widen(high(v)), F16::widen(low(v)));
}
template <class T> static inline uint32_t from_fp8(uint16_t v) {
  return both(F16::narrow<0>(T::widen((uint8_t)v)), F16::narrow<0>(T::widen((uint8_t)(v >> 8))));
}
}  // namespace ks
