#include "device_memory.h"

#include <map>

#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr uint64_t kAlignment = 512;              // what cudaMalloc gives
constexpr uint64_t kSlack = 256ull << 20;         // how far outside an allocation an address still belongs to it
constexpr uint64_t kGap = 2 * kSlack;             // so that the surroundings of two allocations never meet
constexpr uint64_t kAscendingStart = 0x120000000000ull;
constexpr uint64_t kDescendingStart = 0x4a0000000000ull;
constexpr uint64_t kMaxSpan = 0x180000000000ull;  // keeps both layouts apart and below every host mapping
constexpr uint64_t kMaxAllocations = 10000;

std::map<uint64_t, Allocation> by_base;
uint64_t count = 0;
uint64_t spanned = 0;
uint64_t in_use = 0;
uint64_t cursor = kAscendingStart;
bool descending = false;
uint32_t random_state = 1;

uint64_t random_gap() {
  random_state = random_state * 1664525u + 1013904223u;
  return kGap + ((random_state >> 12) & 0xffff) * kAlignment;
}

uint64_t place(uint64_t size) {
  const uint64_t room = (size + kAlignment - 1) / kAlignment * kAlignment;
  const uint64_t gap = random_gap();
  spanned += room + gap;
  if (spanned > kMaxSpan) refuse("the launcher allocates more memory than any GPU has", Direct::broken);
  if (descending) {
    cursor -= room + gap;
    return cursor;
  }
  const uint64_t base = cursor + gap;
  cursor = base + room;
  return base;
}

const char* name_of(Allocation::Kind kind) {
  switch (kind) {
    case Allocation::Kind::buffer: return "buffer";
    case Allocation::Kind::temporary: return "temporary";
    case Allocation::Kind::symbol: return "symbol";
  }
  return "";
}

}  // namespace

void choose_layout(uint64_t layout) {
  descending = layout % 2 == 1;
  cursor = descending ? kDescendingStart : kAscendingStart;
  random_state = static_cast<uint32_t>(layout * 7919 + 17);
}

Allocation& allocate(uint64_t size, Allocation::Kind kind, const std::string& name) {
  if (count >= kMaxAllocations) refuse("the launcher makes more than 10000 allocations", Direct::possible);
  const uint64_t base = place(size);
  Line("allocation")
      .number("id", count)
      .text("kind", name_of(kind))
      .text("name", name)
      .number("base", base)
      .number("size", size)
      .write();
  in_use += size;
  return by_base.emplace(base, Allocation{kind, count++, base, size}).first->second;
}

void release(Allocation& allocation) {
  allocation.freed = true;
  in_use -= allocation.size;
}

Allocation* find_allocation(const void* address) {
  const auto value = reinterpret_cast<uint64_t>(address);
  auto next = by_base.upper_bound(value + kSlack);
  if (next == by_base.begin()) return nullptr;
  Allocation& candidate = std::prev(next)->second;
  return value <= candidate.base + candidate.size + kSlack ? &candidate : nullptr;
}

Allocation* find_span(const void* address, uint64_t size) {
  Allocation* found = find_allocation(address);
  const auto value = reinterpret_cast<uint64_t>(address);
  if (found == nullptr || found->freed || value < found->base) return nullptr;
  const uint64_t offset = value - found->base;
  return offset <= found->size && size <= found->size - offset ? found : nullptr;
}

bool is_device_address(const void* address) { return find_allocation(address) != nullptr; }

uint64_t bytes_in_use() { return in_use; }

}  // namespace recorder
