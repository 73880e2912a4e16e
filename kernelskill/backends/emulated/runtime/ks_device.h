// What a translated kernel sees of the runtime: its thread, checked memory, the meeting points.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ks {

enum class Fault : int32_t {
  none = 0, out_of_bounds, misaligned, read_only, deadlock, timeout, trap, assertion, stack_overflow,
  bad_mask, launch, memory
};
enum class Space : int32_t { global = 0, shared = 1, local = 2, constant = 3, generic = 4, parameter = 5 };
enum class Access : int32_t { read = 0, write = 1, atomic = 2 };

// An allocation as one access site last met it: addresses low .. low + limit may start an access there.
struct Interval { uint64_t low; uint64_t limit; };

struct Block;
struct Trace;

// One CUDA thread. The first part is read by translated code, the rest belongs to the scheduler.
struct Thread {
  uint32_t tid[3];
  uint32_t lane, warp;
  Block* block;
  Interval* sites;       // of the operating-system thread that runs the block
  uint8_t* shared;       // the block's shared memory
  uint64_t shared_size;
  uint8_t* local;        // the thread's local memory
  uint64_t local_size, local_used;
  Trace* trace;          // null outside of traced blocks
  // scheduler
  uint8_t state;
  uint8_t barrier;
  int32_t site;          // where it waits
  int32_t fiber;
  uint32_t mask, present;
  uint64_t value;
  const uint64_t* frame; // values of the lanes that met, by lane
  uint32_t reduction;    // result of a barrier with a reduction
  uint32_t carry;        // of extended-precision arithmetic
  uint32_t epoch;        // counts meetings of the block, for races
  uint32_t warp_epoch;   // counts meetings of the warp
  uint32_t meetings = 1u << 31;  // counts waits on barrier objects
};

struct Block {
  uint32_t ctaid[3], ntid[3], nctaid[3];
  uint64_t index;
  uint32_t dynamic_shared, static_shared;
  uint64_t workspace;    // of a cooperative launch: what the grid's barrier counts in
  uint32_t sm;
};

using Kernel = void (*)(Thread&, const uint8_t*);

struct KernelEntry { const char* name; Kernel function; uint32_t static_shared, local_bytes, registers, spins; };
struct VariableEntry {
  const char* name; uint64_t size; uint32_t align; int32_t space; const uint8_t* initial; uint64_t initial_size;
  uint64_t* address;     // written by the runtime before the first launch
};
struct RelocationEntry { uint32_t variable; uint64_t offset; uint32_t target; uint64_t addend; };

// Slow paths and meeting points, in the runtime library. A faulting thread never returns from them.
extern "C" {
uint8_t* ks_check(Thread&, uint64_t address, uint64_t size, int32_t site, int32_t space, int32_t access);
[[noreturn]] void ks_fail(Thread&, int32_t fault, int32_t site, uint64_t address, uint64_t size, int32_t space,
                          int32_t access);
void ks_spin(Thread&, int32_t site);
void ks_lockstep(Thread&);
void ks_barrier(Thread&, uint32_t id, uint32_t count, int32_t site);
void ks_barrier_arrive(Thread&, uint32_t id, uint32_t count, int32_t site);
uint32_t ks_barrier_reduce(Thread&, uint32_t id, uint32_t count, int32_t predicate, int32_t operation, int32_t site);
const uint64_t* ks_meet(Thread&, uint32_t mask, uint64_t value, int32_t site);
uint32_t ks_active_mask(Thread&, int32_t site);
uint64_t ks_clock(void);
void ks_assert_fail(Thread&, int32_t site, uint64_t message, uint64_t file, uint32_t line, uint64_t function);
void ks_print(Thread&, uint64_t format, uint64_t arguments);
uint64_t ks_function_id(void*);
uint32_t ks_is_global(uint64_t address, int32_t constant);
void ks_trace_access(Thread&, int32_t site, uint64_t address, uint32_t size, int32_t space, int32_t access);
void ks_trace_block(Thread&, int32_t basic_block);
}

#define KS_LIKELY(x) __builtin_expect(!!(x), 1)
#define KS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#ifdef KS_INSTRUMENT
#define KS_TRACE(t, site, address, size, space, access) \
  ks_trace_access(t, site, (uint64_t)(address), size, (int32_t)(space), (int32_t)(access))
#define KS_BLOCK(t, n) ks_trace_block(t, n)
#else
#define KS_TRACE(t, site, address, size, space, access)
#define KS_BLOCK(t, n)
#endif

template <unsigned N, Access A, Space S = Space::global>
static inline __attribute__((always_inline)) uint8_t* global(Thread& t, uint64_t address, int32_t site) {
  const Interval& known = t.sites[site];
  if (KS_UNLIKELY((address - known.low > known.limit) | ((address & (N - 1)) != 0))) {
    uint8_t* place = ks_check(t, address, N, site, (int32_t)S, (int32_t)A);
    KS_TRACE(t, site, place, N, S, A);
    return place;
  }
  KS_TRACE(t, site, address, N, S, A);
  return reinterpret_cast<uint8_t*>(address);
}

template <unsigned N, Access A>
static inline __attribute__((always_inline)) uint8_t* shared(Thread& t, uint64_t address, int32_t site) {
  if (KS_UNLIKELY((address + N > t.shared_size) | (address > t.shared_size) | ((address & (N - 1)) != 0)))
    return ks_check(t, address, N, site, (int32_t)Space::shared, (int32_t)A);
  KS_TRACE(t, site, address, N, Space::shared, A);
  return t.shared + address;
}

template <unsigned N, Access A>
static inline __attribute__((always_inline)) uint8_t* local(Thread& t, uint64_t address, int32_t site) {
  uint64_t offset = address - (uint64_t)t.local;
  if (KS_UNLIKELY((offset + N > t.local_used) | (offset > t.local_used) | ((address & (N - 1)) != 0)))
    return ks_check(t, address, N, site, (int32_t)Space::local, (int32_t)A);
  KS_TRACE(t, site, address, N, Space::local, A);
  return reinterpret_cast<uint8_t*>(address);
}

template <unsigned N, Access A>
static inline __attribute__((always_inline)) uint8_t* generic(Thread& t, uint64_t address, int32_t site) {
  if (KS_UNLIKELY(address - (uint64_t)t.local < t.local_size)) return local<N, A>(t, address, site);
  if (KS_UNLIKELY(address - (uint64_t)t.shared < t.shared_size))
    return shared<N, A>(t, address - (uint64_t)t.shared, site);
  return global<N, A, Space::generic>(t, address, site);
}

template <class T> static inline __attribute__((always_inline)) T get(const uint8_t* place, unsigned index) {
  T value;
  memcpy(&value, place + index * sizeof(T), sizeof(T));
  return value;
}
template <class T> static inline __attribute__((always_inline)) void put(uint8_t* place, unsigned index, T value) {
  memcpy(place + index * sizeof(T), &value, sizeof(T));
}
template <class D, class S> static inline __attribute__((always_inline)) D bits(S value) {
  static_assert(sizeof(D) == sizeof(S), "bits of another width");
  return __builtin_bit_cast(D, value);
}

// Local memory of one function: taken on entry, given back on return.
struct Frame {
  Thread& thread;
  uint64_t before;
  uint8_t* base;
  Frame(Thread& t, uint64_t size, int32_t site) : thread(t), before(t.local_used) {
    uint64_t start = (before + 15) & ~uint64_t(15);
    if (KS_UNLIKELY(start + size > t.local_size))
      ks_fail(t, (int32_t)Fault::stack_overflow, site, 0, size, (int32_t)Space::local, 0);
    base = t.local + start;
    t.local_used = start + size;
  }
  ~Frame() { thread.local_used = before; }
};

}  // namespace ks
