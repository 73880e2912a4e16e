// Made-up device memory: addresses without storage, in one of two layouts.
#pragma once

#include <cstdint>
#include <string>

namespace recorder {

struct Allocation {
  enum class Kind { buffer, temporary, symbol } kind;
  uint64_t id;
  uint64_t base;
  uint64_t size;
  bool freed = false;
};

// Two layouts place the same allocations at other distances and in the opposite order, so that only
// a plain value is equal in both.
void choose_layout(uint64_t layout);

Allocation& allocate(uint64_t size, Allocation::Kind kind, const std::string& name);
void release(Allocation& allocation);

// The allocation whose surroundings hold the address; addresses slightly outside belong to it too.
Allocation* find_allocation(const void* address);

// The live allocation that holds all of the bytes, or null.
Allocation* find_span(const void* address, uint64_t size);

bool is_device_address(const void* address);

// Device memory in use.
uint64_t bytes_in_use();

}  // namespace recorder
