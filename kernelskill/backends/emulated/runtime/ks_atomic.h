// Atomic operations. A block never leaves its operating-system thread, so shared memory needs no real atomics.
#pragma once
#include "ks_half.h"

namespace ks {

template <class T, class Bits> struct AtomicCell {
  // Replace the value by f(value); return the old one.
  template <bool Shared, class F> static inline T update(uint8_t* place, F f) {
    Bits* cell = reinterpret_cast<Bits*>(place);
    Bits old = __atomic_load_n(cell, __ATOMIC_RELAXED);
    for (;;) {
      T before;
      memcpy(&before, &old, sizeof(T));
      T after = f(before);
      Bits next;
      memcpy(&next, &after, sizeof(T));
      if (Shared) {
        *cell = next;
        return before;
      }
      if (__atomic_compare_exchange_n(cell, &old, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return before;
    }
  }
};
template <unsigned N> struct BitsOf;
template <> struct BitsOf<2> { using type = uint16_t; };
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };

template <class T> struct PlainAtomic {
  using Cell = AtomicCell<T, typename BitsOf<sizeof(T)>::type>;
#define KS_ATOMIC(name, expression)                                           \
  template <bool S> static inline T name(uint8_t* place, T v) {               \
    return Cell::template update<S>(place, [=](T a) { return (T)(expression); }); \
  }
  KS_ATOMIC(add, a + v)
  KS_ATOMIC(min, v < a ? v : a)
  KS_ATOMIC(max, v > a ? v : a)
  KS_ATOMIC(exch, v)
  template <bool S> static inline T cas(uint8_t* place, T compare, T v) {
    return Cell::template update<S>(place, [=](T a) { return a == compare ? v : a; });
  }
  template <bool S> static inline T inc(uint8_t* place, T v) {
    return Cell::template update<S>(place, [=](T a) { return a >= v ? (T)0 : (T)(a + 1); });
  }
  template <bool S> static inline T dec(uint8_t* place, T v) {
    return Cell::template update<S>(place, [=](T a) { return a == 0 || a > v ? v : (T)(a - 1); });
  }
  using Bits = typename BitsOf<sizeof(T)>::type;
#define KS_ATOMIC_BITS(name, sign)                                                                          \
  template <bool S> static inline T name##_(uint8_t* place, T v) {                                          \
    return Cell::template update<S>(place, [=](T a) { return bits<T>((Bits)(bits<Bits>(a) sign bits<Bits>(v))); }); \
  }
  KS_ATOMIC_BITS(and, &)
  KS_ATOMIC_BITS(or, |)
  KS_ATOMIC_BITS(xor, ^)
};

template <class H, bool Pair> struct HalfAtomic {
  using T = typename BitsOf<Pair ? 4 : 2>::type;
  using Cell = AtomicCell<T, T>;
  template <bool S, class F> static inline T lanes(uint8_t* place, T v, F f) {
    return Cell::template update<S>(place, [=](T a) {
      if (!Pair) return (T)f((uint16_t)a, (uint16_t)v);
      return (T)both(f(low(a), low(v)), f(high(a), high(v)));
    });
  }
  template <bool S> static inline T add(uint8_t* p, T v) { return lanes<S>(p, v, half_add_one<H, 0>); }
  template <bool S> static inline T min(uint8_t* p, T v) { return lanes<S>(p, v, half_min_one<H, 0>); }
  template <bool S> static inline T max(uint8_t* p, T v) { return lanes<S>(p, v, half_max_one<H, 0>); }
};
}  // namespace ks
