// The device's memory: one reserved range, allocations in it, and the check of an address.
#include <sys/mman.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <mutex>

#include "ks_engine.h"
#include "ks_math.h"

namespace ks {
Engine engine;

const Allocation* find_allocation(uint64_t address, uint64_t size) {
  const auto& all = engine.allocations;
  auto next = std::upper_bound(all.begin(), all.end(), address,
                               [](uint64_t a, const Allocation& b) { return a < b.base; });
  if (next == all.begin()) return nullptr;
  const Allocation& candidate = *--next;
  uint64_t offset = address - candidate.base;
  return offset <= candidate.size && size <= candidate.size - offset ? &candidate : nullptr;
}

void record_fault(Thread* t, Fault fault, int32_t site, uint64_t address, uint64_t size, Space space,
                  Access access) {
  if (engine.fault_taken.exchange(1)) return;
  FaultRecord& record = engine.fault;
  record.fault = (int32_t)fault;
  record.site = site;
  record.space = (int32_t)space;
  record.access = (int32_t)access;
  record.address = address;
  record.size = size;
  for (int i = 0; i < 3; i++) {
    record.ctaid[i] = t ? t->block->ctaid[i] : 0;
    record.tid[i] = t ? t->tid[i] : 0;
  }
}
}  // namespace ks

using namespace ks;
static uint8_t zeros[256];
static thread_local uint8_t sink[256];

extern "C" {
[[noreturn]] void ks_fail(Thread& t, int32_t fault, int32_t site, uint64_t address, uint64_t size, int32_t space, int32_t access) {
  record_fault(&t, (Fault)fault, site, address, size, (Space)space, (Access)access);
  engine.stop.store(1);
  abandon();
}

uint8_t* ks_check(Thread& t, uint64_t address, uint64_t size, int32_t site, int32_t space, int32_t access) {
  bool windowed = space == (int32_t)Space::shared || space == (int32_t)Space::local;
  const Allocation* found = windowed ? nullptr : find_allocation(address, size);
  const LaunchRequest* launch = engine.launch;
  if (!found && !windowed && access == 0 && launch && address - (uint64_t)launch->parameters < launch->parameter_bytes &&
      size <= launch->parameter_bytes - (address - (uint64_t)launch->parameters))
    return reinterpret_cast<uint8_t*>(address);
  uint64_t natural = size & (~size + 1);
  bool misaligned = (address & (natural - 1)) != 0;
  if (found && !misaligned && (found->writable || access == 0)) {
    t.sites[site] = {found->base, found->size - size};
    return reinterpret_cast<uint8_t*>(address);
  }
  if (launch && launch->lenient && size <= sizeof(zeros)) {
    engine.dropped.fetch_add(1, std::memory_order_relaxed);
    return access == 0 ? zeros : (memset(sink, 0, sizeof(sink)), sink);
  }
  Fault fault = found && misaligned            ? Fault::misaligned
                : found                         ? Fault::read_only
                : windowed && misaligned        ? Fault::misaligned
                                                : Fault::out_of_bounds;
  if (windowed && misaligned) {
    uint64_t offset = space == (int32_t)Space::local ? address - (uint64_t)t.local : address;
    uint64_t limit = space == (int32_t)Space::local ? t.local_used : t.shared_size;
    if (offset > limit || offset + size > limit) fault = Fault::out_of_bounds;
  }
  if (space == (int32_t)Space::local) address -= (uint64_t)t.local;
  ks_fail(t, (int32_t)fault, site, address, size, space, access);
}

// Reserve address space; nothing in it can be touched before ks_commit.
uint64_t ks_reserve(uint64_t bytes) {
  // The same addresses in every process where they are free: the traced cache's sets go by them, and
  // estimates should not vary with the address space layout.
  void* wanted = (void*)0x600000000000ull;
  void* range = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? 0 : (uint64_t)range;
}
int ks_commit(uint64_t base, uint64_t bytes) {
  return mprotect((void*)base, bytes, PROT_READ | PROT_WRITE);
}
int ks_discard(uint64_t base, uint64_t bytes) {
  return mmap((void*)base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
                 MAP_FAILED
             ? -1
             : 0;
}

void ks_set_allocations(const Allocation* list, uint64_t count) {
  engine.allocations.assign(list, list + count);
  std::sort(engine.allocations.begin(), engine.allocations.end(),
            [](const Allocation& a, const Allocation& b) { return a.base < b.base; });
  engine.version++;
}

void ks_fault(FaultRecord* out) { *out = engine.fault; }
double ks_directed(int32_t operation, int32_t rounding, double a, double b, double c) {
  static const int modes[4] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  volatile double x = a, y = b, z = c, r = 0;
  int before = fegetround();
  fesetround(modes[rounding & 3]);
  switch (operation) {
    case 0: r = x + y; break;
    case 1: r = x * y; break;
    case 2: r = std::fma(x, y, z); break;
    case 3: r = x / y; break;
    default: r = std::sqrt(x);
  }
  fesetround(before);
  return r;
}

uint64_t ks_dropped() { return engine.dropped.exchange(0); }

static bool readable_text(uint64_t address, char* out, size_t size) {
  const Allocation* found = find_allocation(address, 1);
  if (!found) return false;
  size_t n = 0;
  for (; n + 1 < size && address + n < found->base + found->size && *(char*)(address + n); n++)
    out[n] = *(char*)(address + n);
  out[n] = 0;
  return true;
}

void ks_assert_fail(Thread& t, int32_t site, uint64_t message, uint64_t, uint32_t line, uint64_t) {
  if (!engine.fault_taken.load()) {
    char text[200] = "";
    readable_text(message, text, sizeof(text));
    snprintf(engine.fault.text, sizeof(engine.fault.text), "%s", text);
  }
  ks_fail(t, (int32_t)Fault::assertion, site, 0, line, 0, 0);
}

uint32_t ks_is_global(uint64_t address, int32_t constant) {
  const Allocation* found = find_allocation(address, 1);
  return found && found->writable == !constant;
}

void ks_print(Thread&, uint64_t, uint64_t) {}
}
