// Inside of the runtime library: memory, fibers, blocks, the launch in progress.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "ks_device.h"

namespace ks {

struct Allocation { uint64_t base, size; int32_t id; bool writable; };

struct FaultRecord {
  int32_t fault, site, space, access;
  uint64_t address, size;
  uint32_t ctaid[3], tid[3];
  char text[256];
};

struct LaunchRequest {
  Kernel plain, traced;
  uint32_t grid[3], block[3];
  uint32_t static_shared, dynamic_shared, local_bytes, registers;
  const uint8_t* parameters;
  uint64_t parameter_bytes;
  uint32_t cooperative, threads, max_resident, lenient;
  uint32_t only_sampled, sampled_count;
  const uint64_t* sampled;
  uint64_t sites;        // access sites of the module
  uint32_t basic_blocks; // of the module
  uint32_t trace_mode;   // 1 races, 2 accesses, 3 both
  uint64_t workspace;
  uint64_t l1_bytes;     // of the first-level cache that one block may count on
  uint32_t backwards;    // whether the last block comes first
};

struct Engine {
  std::vector<Allocation> allocations;  // sorted by base
  uint64_t version = 1;                 // of the allocations
  std::atomic<int> stop{0};             // 1 a fault, 2 the deadline
  std::atomic<int> fault_taken{0};
  std::atomic<uint64_t> dropped{0};     // accesses out of bounds that a lenient launch let pass
  FaultRecord fault{};
  const LaunchRequest* launch = nullptr;
  uint64_t launches = 0;                // counts them
  std::vector<char> printed;
};
extern Engine engine;

const Allocation* find_allocation(uint64_t address, uint64_t size);
void record_fault(Thread* t, Fault fault, int32_t site, uint64_t address, uint64_t size, Space space, Access access);

struct Fiber { void* stack_pointer; uint8_t* region; };
extern "C" void ks_switch(void** save, void* to);

// Stacks of one operating-system thread, all of one size; local memory lies at the low end of each.
class FiberPool {
 public:
  void require(uint64_t local_bytes, uint64_t stack_bytes);
  int take(void (*entry)());
  void give(int fiber) { free_.push_back(fiber); }
  Fiber& operator[](int i) { return fibers_[i]; }
  ~FiberPool();

 private:
  void release();
  uint64_t region_ = 0;
  std::vector<Fiber> fibers_;
  std::vector<int> free_;
  std::vector<std::pair<void*, uint64_t>> chunks_;
};

enum State : uint8_t { FRESH, READY, AT_BARRIER, AT_MEETING, AT_ACTIVE, DONE };

struct Barrier { uint32_t waiting = 0, arrived = 0, count = 0, sum = 0; int32_t any = 0, all = 1; };

struct BlockState {
  Block block;
  std::vector<Thread> threads;
  std::vector<uint32_t> warp_live;
  std::vector<uint64_t> frames;  // [warp][lowest lane][lane]
  std::vector<uint8_t> shared_storage;
  Barrier barriers[16];
  uint32_t live, next_fresh, epoch, stalled;
  uint64_t prepared_for = 0;     // the launch that its threads were set up for
  uint8_t* shared_base = nullptr;
  bool spun, traced;
  Kernel kernel;
  std::unique_ptr<Trace, void (*)(Trace*)> trace{nullptr, nullptr};
};

struct Worker {
  FiberPool fibers;
  std::vector<Interval> sites;
  uint64_t sites_version = 0;
  Fiber main{};
  BlockState* current_block = nullptr;
  Thread* current = nullptr;
  std::vector<std::unique_ptr<BlockState>> idle;
};
extern thread_local Worker* worker;

[[noreturn]] void abandon();

Trace* trace_begin(BlockState&, const LaunchRequest&);
void trace_flush(Trace*);
void trace_meet(Trace*, uint32_t warp);
void trace_end(Trace*);
void trace_delete(Trace*);
}  // namespace ks
