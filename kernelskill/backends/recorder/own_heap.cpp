// The heap of the whole process. The C library does the work; here is written down what belongs to the candidate:
// whatever is allocated while no function of the recorder is on the stack. The compiler calls a hook of ours on
// entry to and exit from each of the recorder's functions (-finstrument-functions), but not in this file.
#include "own_heap.h"

#include <cerrno>
#include <cstring>

#include <algorithm>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* start, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* start);
}

namespace recorder {
namespace {

constexpr size_t kMostChunks = 1 << 12;
constexpr size_t kSlots = 1 << 15;
const uint64_t kRemoved = 1;  // no chunk starts there

Chunk slots[kSlots];  // open addressing; a start of zero was never used
size_t live = 0;
size_t used = 0;  // removed ones too: they cannot be empty again
uint64_t serials = 0;
bool lost = false;
thread_local int depth __attribute__((tls_model("initial-exec"))) = 1;  // begins inside the recorder

size_t slot_of(uint64_t start) { return (start >> 4) * 0x9e3779b97f4a7c15ull >> 49; }

static_assert(kSlots == 1ull << 15, "slot_of keeps 15 bits");

void follow(void* start, size_t size) {
  if (start == nullptr) return;
  if (live >= kMostChunks || used >= kSlots / 4 * 3) {
    lost = true;
    return;
  }
  size_t slot = slot_of(reinterpret_cast<uint64_t>(start));
  while (slots[slot].start > kRemoved) slot = (slot + 1) % kSlots;
  if (slots[slot].start == 0) ++used;
  ++live;
  slots[slot] = {reinterpret_cast<uint64_t>(start), size, ++serials};
}

void* taken(void* start, size_t size) {
  if (depth == 0) follow(start, size);
  return start;
}

void forget(void* start) {
  const auto wanted = reinterpret_cast<uint64_t>(start);
  for (size_t slot = slot_of(wanted); slots[slot].start != 0; slot = (slot + 1) % kSlots)
    if (slots[slot].start == wanted) {
      slots[slot].start = kRemoved;
      --live;
      return;
    }
}

}  // namespace

CandidateCode::CandidateCode() : depth_(depth) { depth = 0; }
CandidateCode::~CandidateCode() { depth = depth_; }

std::vector<Chunk> candidate_chunks() {
  std::vector<Chunk> found;
  for (const Chunk& chunk : slots)
    if (chunk.start > kRemoved) found.push_back(chunk);
  std::sort(found.begin(), found.end(), [](const Chunk& a, const Chunk& b) { return a.start < b.start; });
  return found;
}

void give_to_candidate(void* start, size_t size) { follow(start, size); }

bool lost_count_of_chunks() { return lost; }

}  // namespace recorder

#define RECORDER_HEAP extern "C" __attribute__((visibility("default")))

RECORDER_HEAP void __cyg_profile_func_enter(void*, void*) { ++recorder::depth; }
RECORDER_HEAP void __cyg_profile_func_exit(void*, void*) { --recorder::depth; }

RECORDER_HEAP void* malloc(size_t size) { return recorder::taken(__libc_malloc(size), size); }

RECORDER_HEAP void* calloc(size_t count, size_t size) {
  return recorder::taken(__libc_calloc(count, size), count * size);
}

RECORDER_HEAP void free(void* start) {
  if (start != nullptr) recorder::forget(start);
  __libc_free(start);
}

RECORDER_HEAP void* realloc(void* start, size_t size) {
  void* moved = __libc_realloc(start, size);
  if (moved == nullptr && size != 0) return nullptr;
  if (start != nullptr) recorder::forget(start);
  return recorder::taken(moved, size);
}

RECORDER_HEAP void* memalign(size_t alignment, size_t size) {
  return recorder::taken(__libc_memalign(alignment, size), size);
}

RECORDER_HEAP void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

RECORDER_HEAP int posix_memalign(void** out, size_t alignment, size_t size) {
  if (alignment % sizeof(void*) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) return EINVAL;
  void* start = memalign(alignment, size);
  if (start == nullptr) return ENOMEM;
  *out = start;
  return 0;
}
