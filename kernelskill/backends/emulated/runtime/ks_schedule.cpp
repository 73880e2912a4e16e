// Threads of a block as fibers, blocks over operating-system threads, the meeting points between them.
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "ks_engine.h"

namespace ks {
thread_local Worker* worker = nullptr;
constexpr uint32_t kStackBytes = 48 * 1024;
constexpr uint32_t kStalledPasses = 2;  // passes in which a block only spun, before another block joins it

static inline void enter(Worker* w, BlockState* b, Thread& t) {
  w->current = &t;
  ks_switch(&w->main.stack_pointer, w->fibers[t.fiber].stack_pointer);
  (void)b;
}

// To the scheduler; it comes back here when the thread may go on.
static inline void leave(Thread& t) {
  Worker* w = worker;
  ks_switch(&w->fibers[t.fiber].stack_pointer, w->main.stack_pointer);
}

void abandon() {
  Worker* w = worker;
  void* nowhere;
  ks_switch(&nowhere, w->main.stack_pointer);
  __builtin_unreachable();
}

static void start(Worker* w, Thread& t, int fiber) {
  t.fiber = fiber;
  t.local = w->fibers[fiber].region;
  t.local_used = 0;
  t.state = READY;
  w->current = &t;
}

// Runs fresh threads one after another until one of them has to wait; then the next fiber goes on.
static void fiber_main() {
  for (;;) {
    Worker* w = worker;
    BlockState* b = w->current_block;
    Thread* t = w->current;
    b->kernel(*t, engine.launch->parameters);
    w = worker;
    b = w->current_block;
    t = w->current;
    t->state = DONE;
    b->live--;
    b->warp_live[t->warp] &= ~(1u << t->lane);
    if (b->next_fresh < b->threads.size() && !engine.stop.load(std::memory_order_relaxed)) {
      Thread& next = b->threads[b->next_fresh++];
      start(w, next, t->fiber);
      t->fiber = -1;
      continue;
    }
    abandon();
  }
}

static bool release_meetings(BlockState* b, uint32_t w) {
  uint32_t low = w * 32, high = std::min<uint32_t>(b->threads.size(), low + 32);
  uint32_t waiting = 0;
  for (uint32_t i = low; i < high; i++)
    if (b->threads[i].state == AT_MEETING) waiting |= 1u << (i - low);
  bool any = false;
  for (uint32_t left = waiting; left;) {
    uint32_t lane = __builtin_ctz(left);
    left &= left - 1;
    Thread& t = b->threads[low + lane];
    if (t.state != AT_MEETING) continue;
    uint32_t needed = t.mask & b->warp_live[w];
    if ((waiting & needed) != needed) continue;
    bool same = true;
    for (uint32_t rest = needed; rest; rest &= rest - 1)
      same &= (b->threads[low + __builtin_ctz(rest)].mask & b->warp_live[w]) == needed;
    if (!same) continue;
    uint64_t* frame = &b->frames[(uint64_t)low * 32 + __builtin_ctz(needed) * 32];
    b->epoch++;
    if (needed == b->warp_live[w]) trace_meet(b->threads[low].trace, w);
    for (uint32_t rest = needed; rest; rest &= rest - 1) {
      uint32_t other = __builtin_ctz(rest);
      Thread& member = b->threads[low + other];
      frame[other] = member.value;
      member.frame = frame;
      member.present = needed;
      member.warp_epoch = b->epoch;
      member.state = READY;
    }
    waiting &= ~needed;
    left &= ~needed;
    any = true;
  }
  return any;
}

// Threads that asked who is active meet when nothing else of their warp can run.
static bool release_active(BlockState* b, uint32_t w) {
  uint32_t low = w * 32, high = std::min<uint32_t>(b->threads.size(), low + 32);
  int32_t site = -1;
  uint32_t group = 0;
  for (uint32_t i = low; i < high; i++) {
    Thread& t = b->threads[i];
    if (t.state != AT_ACTIVE || (group && t.site != site)) continue;
    site = t.site;
    group |= 1u << (i - low);
  }
  for (uint32_t i = low; i < high; i++)
    if (group >> (i - low) & 1) {
      b->threads[i].present = group;
      b->threads[i].state = READY;
    }
  return group != 0;
}

static bool release_barriers(BlockState* b) {
  if (b->next_fresh < b->threads.size()) return false;
  bool any = false;
  for (uint32_t id = 0; id < 16; id++) {
    Barrier& barrier = b->barriers[id];
    if (!barrier.waiting) continue;
    uint32_t needed = barrier.count ? barrier.count : b->live;
    if (barrier.waiting + barrier.arrived < needed) continue;
    b->epoch++;
    for (Thread& t : b->threads)
      if (t.state == AT_BARRIER && t.barrier == id) {
        t.state = READY;
        t.epoch = b->epoch;
        t.reduction = t.mask == 0 ? barrier.sum : t.mask == 1 ? (uint32_t)barrier.all : (uint32_t)barrier.any;
      }
    barrier = Barrier{};
    any = true;
  }
  if (any && b->traced) trace_flush(b->trace.get());
  return any;
}

// What all blocks of a launch have in common.
static void prepare_threads(Worker* w, BlockState* b, const LaunchRequest& launch, uint64_t shared, uint8_t* base) {
  const uint32_t* n = launch.block;
  for (uint32_t i = 0; i < b->threads.size(); i++) {
    Thread& t = b->threads[i];
    t = Thread{};
    t.tid[0] = i % n[0];
    t.tid[1] = i / n[0] % n[1];
    t.tid[2] = i / (n[0] * n[1]);
    t.lane = i & 31;
    t.warp = i >> 5;
    t.block = &b->block;
    t.sites = w->sites.data();
    t.shared = base;
    t.shared_size = shared;
    t.local_size = launch.local_bytes;
  }
}

static void block_start(Worker* w, BlockState* b, uint64_t index, bool traced) {
  const LaunchRequest& launch = *engine.launch;
  const uint32_t* n = launch.block;
  uint32_t count = n[0] * n[1] * n[2], warps = (count + 31) / 32;
  Block& block = b->block;
  block.index = index;
  block.ctaid[0] = (uint32_t)(index % launch.grid[0]);
  block.ctaid[1] = (uint32_t)(index / launch.grid[0] % launch.grid[1]);
  block.ctaid[2] = (uint32_t)(index / launch.grid[0] / launch.grid[1]);
  for (int i = 0; i < 3; i++) block.ntid[i] = n[i], block.nctaid[i] = launch.grid[i];
  block.dynamic_shared = launch.dynamic_shared;
  block.static_shared = launch.static_shared;
  block.workspace = launch.workspace;
  block.sm = (uint32_t)(index % 132);
  uint64_t shared = (uint64_t)launch.static_shared + launch.dynamic_shared;
  b->shared_storage.resize(shared + 256);
  uint8_t* base = (uint8_t*)(((uintptr_t)b->shared_storage.data() + 127) & ~uintptr_t(127));
  // Shared memory starts with a large value of every type: reading it before writing must not look right by luck.
  memset(base, 0x7B, shared);
  b->threads.resize(count);
  b->warp_live.assign(warps, 0);
  b->frames.resize((uint64_t)warps * 1024);
  for (Barrier& barrier : b->barriers) barrier = Barrier{};
  b->live = count;
  b->next_fresh = 0;
  b->epoch = 0;
  b->stalled = 0;
  b->traced = traced;
  b->kernel = traced ? launch.traced : launch.plain;
  if (traced) b->trace = {trace_begin(*b, launch), trace_delete};
  bool fresh = b->prepared_for != engine.launches || b->shared_base != base;
  b->prepared_for = engine.launches;
  b->shared_base = base;
  if (fresh) prepare_threads(w, b, launch, shared, base);
  Trace* trace = traced ? b->trace.get() : nullptr;
  for (uint32_t i = 0; i < count; i++) {
    Thread& t = b->threads[i];
    t.trace = trace;
    t.state = FRESH;
    t.fiber = -1;
    t.site = -1;
    t.carry = t.epoch = t.warp_epoch = 0;
  }
  for (uint32_t i = 0; i < warps; i++) {
    uint32_t lanes = std::min<uint32_t>(32, count - i * 32);
    b->warp_live[i] = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
}

static bool run_lanes(Worker* w, BlockState* b, uint32_t low, uint32_t high) {
  bool progress = false;
  for (uint32_t i = low; i < high; i++) {
    Thread& t = b->threads[i];
    if (t.state == READY) {
      uint8_t spun_before = b->spun;
      b->spun = false;
      enter(w, b, t);
      progress |= !b->spun;
      b->spun |= spun_before;
    } else if (t.state == FRESH && i == b->next_fresh) {
      int fiber = w->fibers.take(fiber_main);
      if (fiber < 0) {
        record_fault(&t, Fault::memory, -1, 0, 0, Space::global, Access::read);
        engine.stop.store(1);
        return progress;
      }
      b->next_fresh++;
      start(w, t, fiber);
      enter(w, b, t);
      progress = true;
    } else {
      continue;
    }
    Thread* last = w->current;
    if (last->state == DONE && last->fiber >= 0) {
      w->fibers.give(last->fiber);
      last->fiber = -1;
    }
    if (engine.stop.load(std::memory_order_relaxed)) return progress;
  }
  return progress;
}

static void report_deadlock(BlockState* b) {
  for (Thread& t : b->threads)
    if (t.state == AT_BARRIER || t.state == AT_MEETING) {
      uint32_t waiting = 0;
      for (Thread& o : b->threads) waiting += o.state == t.state;
      record_fault(&t, Fault::deadlock, t.site, waiting, b->live, Space::shared, Access::read);
      break;
    }
  engine.stop.store(1);
}

// Name a thread that was still going on when the time was over, else one that waited.
static void report_timeout(BlockState* b) {
  for (bool running : {true, false})
    for (Thread& t : b->threads)
      if (t.site >= 0 && (running ? t.state == READY : t.state != DONE)) {
        record_fault(&t, Fault::timeout, t.site, 0, 0, Space::global, Access::read);
        return;
      }
}

// One pass over the threads. True when the block has ended.
static bool block_pass(Worker* w, BlockState* b) {
  w->current_block = b;
  uint32_t n = b->threads.size();
  bool progress = false, spun = false;
  b->spun = false;
  for (uint32_t warp = 0; warp < b->warp_live.size(); warp++) {
    uint32_t low = warp * 32, high = std::min(n, low + 32);
    do {
      progress |= run_lanes(w, b, low, high);
      spun |= b->spun;
      if (engine.stop.load(std::memory_order_relaxed)) return true;
    } while (release_meetings(b, warp));
  }
  if (!b->live) return true;
  bool released = release_barriers(b);
  if (!released && !progress && !spun)
    for (uint32_t warp = 0; warp < b->warp_live.size(); warp++) released |= release_active(b, warp);
  if (!released && !progress && !spun) {
    report_deadlock(b);
    return true;
  }
  b->stalled = released || progress ? 0 : b->stalled + 1;
  return false;
}

static void block_end(Worker* w, BlockState* b) {
  for (Thread& t : b->threads)
    if (t.fiber >= 0) w->fibers.give(t.fiber);
  if (b->traced) trace_end(b->trace.get());
  b->trace = {nullptr, trace_delete};
}

// Hands out the blocks of the launch in order, or from the last to the first.
class Queue {
 public:
  explicit Queue(const LaunchRequest& launch) : launch_(launch) {
    total_ = launch.only_sampled ? launch.sampled_count
                                 : (uint64_t)launch.grid[0] * launch.grid[1] * launch.grid[2];
  }
  bool next(uint64_t& index, bool& traced) {
    uint64_t k = next_.fetch_add(1);
    if (k >= total_) return false;
    index = launch_.only_sampled ? launch_.sampled[k] : launch_.backwards ? total_ - 1 - k : k;
    const uint64_t* end = launch_.sampled + launch_.sampled_count;
    traced = launch_.traced && std::binary_search(launch_.sampled, end, index);
    return true;
  }

 private:
  const LaunchRequest& launch_;
  uint64_t total_;
  std::atomic<uint64_t> next_{0};
};

static bool admit(Worker* w, Queue& queue, std::vector<BlockState*>& live,
                  std::vector<std::unique_ptr<BlockState>>& owned) {
  uint64_t index;
  bool traced;
  if (!queue.next(index, traced)) return false;
  if (w->idle.empty()) w->idle.push_back(std::make_unique<BlockState>());
  owned.push_back(std::move(w->idle.back()));
  w->idle.pop_back();
  block_start(w, owned.back().get(), index, traced);
  live.push_back(owned.back().get());
  return true;
}

static void work(Worker* w, Queue& queue, uint32_t max_resident) {
  worker = w;
  std::vector<BlockState*> live;
  std::vector<std::unique_ptr<BlockState>> owned;
  bool more = true, stalled = true;
  while (!engine.stop.load(std::memory_order_relaxed)) {
    if (more && (live.empty() || (stalled && live.size() < max_resident))) more = admit(w, queue, live, owned);
    if (live.empty()) break;
    stalled = true;
    for (size_t i = 0; i < live.size();) {
      BlockState* b = live[i];
      if (block_pass(w, b)) {
        if (engine.stop.load() == 2) report_timeout(b);
        block_end(w, b);
        w->idle.push_back(std::move(owned[i]));
        owned.erase(owned.begin() + i);
        live.erase(live.begin() + i);
        stalled = false;
        if (engine.stop.load(std::memory_order_relaxed)) break;
        continue;
      }
      stalled &= b->stalled >= kStalledPasses;
      i++;
    }
    if (engine.launch->only_sampled && stalled && !more && live.size() && live[0]->stalled > 64) break;
  }
  if (engine.stop.load() == 2)
    for (BlockState* b : live) report_timeout(b);
  for (BlockState* b : live) block_end(w, b);
  for (auto& b : owned) w->idle.push_back(std::move(b));
  worker = nullptr;
}

static std::vector<std::unique_ptr<Worker>> workers;

class Deadline {
 public:
  explicit Deadline(double seconds) : thread_([this, seconds] {
    std::unique_lock<std::mutex> lock(mutex_);
    if (!ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; }))
      engine.stop.store(2);
  }) {}
  ~Deadline() {
    { std::lock_guard<std::mutex> lock(mutex_); over_ = true; }
    ended_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};
}  // namespace ks

using namespace ks;

extern "C" {
void ks_spin(Thread& t, int32_t site) {
  int stop = engine.stop.load(std::memory_order_relaxed);
  if (stop == 2) ks_fail(t, (int32_t)Fault::timeout, site, 0, 0, 0, 0);
  worker->current_block->spun = true;
  t.site = site;
  leave(t);
}

void ks_lockstep(Thread& t) { leave(t); }

static Barrier& join_barrier(Thread& t, uint32_t id, uint32_t count, int32_t site) {
  BlockState* b = worker->current_block;
  Barrier& barrier = b->barriers[id & 15];
  if (count) barrier.count = count;
  t.barrier = (uint8_t)(id & 15);
  t.site = site;
  return barrier;
}

void ks_barrier(Thread& t, uint32_t id, uint32_t count, int32_t site) {
  join_barrier(t, id, count, site).waiting++;
  t.mask = 0;
  t.state = AT_BARRIER;
  leave(t);
}

void ks_barrier_arrive(Thread& t, uint32_t id, uint32_t count, int32_t site) {
  join_barrier(t, id, count, site).arrived++;
}

uint32_t ks_barrier_reduce(Thread& t, uint32_t id, uint32_t count, int32_t predicate, int32_t operation, int32_t site) {
  Barrier& barrier = join_barrier(t, id, count, site);
  barrier.waiting++;
  barrier.sum += predicate != 0;
  barrier.any |= predicate != 0;
  barrier.all &= predicate != 0;
  t.mask = (uint32_t)operation;
  t.state = AT_BARRIER;
  leave(t);
  return t.reduction;
}

const uint64_t* ks_meet(Thread& t, uint32_t mask, uint64_t value, int32_t site) {
  if (!(mask >> t.lane & 1)) ks_fail(t, (int32_t)Fault::bad_mask, site, mask, 0, 0, 0);
  t.mask = mask;
  t.value = value;
  t.site = site;
  t.state = AT_MEETING;
  leave(t);
  return t.frame;
}

uint32_t ks_active_mask(Thread& t, int32_t site) {
  t.site = site;
  t.state = AT_ACTIVE;
  leave(t);
  return t.present;
}

uint64_t ks_clock(void) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

// Carry out one launch. 0: finished; otherwise ks_fault tells what happened.
int32_t ks_launch(const LaunchRequest* launch, double deadline_s) {
  engine.launch = launch;
  engine.launches++;
  engine.stop.store(0);
  engine.fault_taken.store(0);
  engine.fault = FaultRecord{};
  Queue queue(*launch);
  uint32_t count = std::max<uint32_t>(1, launch->threads);
  while (workers.size() < count) workers.push_back(std::make_unique<Worker>());
  static const uint64_t nothing = 0;
  for (uint32_t i = 0; i < count; i++) {
    Worker& w = *workers[i];
    if (w.sites_version != engine.version || w.sites.size() != launch->sites) {
      w.sites.assign(launch->sites + 1, Interval{(uint64_t)&nothing, 0});
      w.sites.resize(launch->sites);
      w.sites_version = engine.version;
    }
    w.fibers.require(launch->local_bytes, kStackBytes + 8ull * launch->registers);
  }
  {
    Deadline deadline(deadline_s);
    uint32_t resident = std::max<uint32_t>(1, launch->max_resident / count);
    std::vector<std::thread> threads;
    for (uint32_t i = 1; i < count; i++)
      threads.emplace_back([&, i] { work(workers[i].get(), queue, resident); });
    work(workers[0].get(), queue, resident);
    for (auto& thread : threads) thread.join();
  }
  engine.launch = nullptr;
  if (engine.stop.load() == 2) record_fault(nullptr, Fault::timeout, -1, 0, 0, Space::global, Access::read);
  return engine.stop.load() ? engine.fault.fault : 0;
}
}
