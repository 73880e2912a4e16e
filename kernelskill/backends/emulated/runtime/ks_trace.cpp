// What traced blocks did: warp requests of every access site, instruction counts of basic blocks, shared-memory races.
//
// Threads run one after another, so accesses are logged and put together again as warps at each barrier and
// at the end of the block: those of one site with the same occurrence number in their threads are one request.
#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>

#include "ks_engine.h"

namespace ks {

constexpr uint32_t kEvery = 96;    // occurrences of a site in a thread that are all logged
constexpr uint32_t kBurst = 32;    // afterwards bursts of this many,
constexpr uint32_t kOneIn = 16;    // of which one in so many is logged; the site is scaled up at the end
constexpr uint64_t kAddress = ((uint64_t)1 << 56) - 1;

struct SiteStat {
  uint64_t requests, lanes, bytes, sectors, lines, partial_sectors, wavefronts, conflicts;
  uint64_t missed_requests, missed_sectors, same_address, same_address_most;
  uint32_t space, access, size, pad;
};
struct BlockStat { uint64_t issues, threads; };
struct RegionStat { int32_t allocation; uint32_t pad; uint64_t read, written, blocks; };
struct Race { int32_t first, second; uint64_t count; };
struct Totals {
  uint64_t blocks, warps, barriers, hot_atomics, hot_blocks, atomics;
  uint64_t line_requests, line_lanes, line_addresses, line_blocks;  // atomics on the most used line
};
struct AtomicLine { uint64_t requests, lanes, addresses, blocks; };

static struct Results {
  std::mutex mutex;
  std::vector<SiteStat> sites;
  std::vector<BlockStat> blocks;
  std::map<int32_t, RegionStat> regions;
  std::map<std::pair<int32_t, int32_t>, uint64_t> races;
  std::unordered_map<uint64_t, std::pair<uint64_t, uint64_t>> atomics;  // address to count and blocks
  std::unordered_map<uint64_t, AtomicLine> atomic_lines;
  Totals totals{};
} results;

// place: space << 56 | address; order: occurrence << 5 | lane; turn: the lane's accesses before this one
struct Entry { uint64_t place; uint32_t site, order, turn; };
struct Cell { int32_t site; uint32_t epoch, warp_epoch; uint16_t thread; bool atomic; };
struct Shadow { Cell writer, reader, other; };

struct Line { uint64_t tag; uint32_t valid; uint64_t used; };
class Cache {  // 128-byte lines of four sectors, eight ways, least recently used
 public:
  explicit Cache(uint64_t bytes) : sets_(std::max<uint64_t>(1, bytes / 1024)), lines_(sets_ * 8, Line{~0ull, 0, 0}) {}
  bool touch(uint64_t sector) {
    uint64_t tag = sector >> 2;
    uint32_t bit = 1u << (sector & 3);
    Line* set = &lines_[(tag * 0x9E3779B97F4A7C15ull >> 32) % sets_ * 8];
    Line* victim = set;
    for (int i = 0; i < 8; i++) {
      if (set[i].tag == tag) {
        bool hit = set[i].valid & bit;
        set[i].valid |= bit;
        set[i].used = ++clock_;
        return hit;
      }
      if (set[i].used < victim->used) victim = &set[i];
    }
    *victim = {tag, bit, ++clock_};
    return false;
  }

 private:
  uint64_t sets_, clock_ = 0;
  std::vector<Line> lines_;
};

struct Request { uint32_t site, count, turn; Entry* entries; };

struct Trace {
  BlockState* block;
  uint32_t mode, basic_blocks;
  uint64_t site_count;
  std::vector<std::vector<Entry>> logs;           // by warp
  std::vector<std::vector<uint32_t>> occurrences;  // by warp: [site * 32 + lane]
  std::vector<std::vector<uint32_t>> counts;      // by warp: [basic block * 32 + lane], since the warp met
  std::vector<std::vector<uint32_t>> run;         // by warp: the basic blocks with counts
  std::vector<BlockStat> blocks;                  // up to where warps met
  std::vector<SiteStat> sites;
  std::vector<uint64_t> seen, logged;             // accesses of each site
  std::unordered_map<uint64_t, uint32_t> read, written;  // sector to the accesses that one logged stands for
  std::unordered_map<uint64_t, uint64_t> atomics;
  std::unordered_map<uint64_t, AtomicLine> atomic_lines;
  std::vector<Shadow> shadow;
  std::map<std::pair<int32_t, int32_t>, uint64_t> races;
  Cache cache;
  uint64_t barriers = 0;
  explicit Trace(uint64_t l1) : cache(l1) {}
};

Trace* trace_begin(BlockState& b, const LaunchRequest& launch) {
  Trace* t = new Trace(launch.trace_mode & 2 ? launch.l1_bytes : 1024);
  uint32_t warps = (b.threads.size() + 31) / 32;
  t->block = &b;
  t->mode = launch.trace_mode;
  t->basic_blocks = launch.basic_blocks;
  t->site_count = launch.sites;
  if (t->mode & 2) {
    t->logs.resize(warps);
    t->occurrences.assign(warps, std::vector<uint32_t>(launch.sites * 32, 0));
    t->counts.assign(warps, std::vector<uint32_t>(launch.basic_blocks * 32, 0));
    t->run.resize(warps);
    t->blocks.assign(launch.basic_blocks, BlockStat{});
    t->sites.assign(launch.sites, SiteStat{});
    t->seen.assign(launch.sites, 0);
    t->logged.assign(launch.sites, 0);
  }
  Cell none{-1, 0, 0, 0, false};
  if (t->mode & 1) t->shadow.assign((uint64_t)launch.static_shared + launch.dynamic_shared + 16, Shadow{none, none, none});
  return t;
}

// A conflict: the same bytes, other threads, no meeting in between, not both atomic.
static inline bool conflict(const Cell& before, const Thread& t, uint16_t thread, bool atomic) {
  if (before.site < 0 || before.thread == thread || (before.atomic && atomic)) return false;
  if (before.epoch != t.epoch) return false;
  if (before.thread / 32 != thread / 32) return true;
  return before.warp_epoch == t.warp_epoch;
}

static void check_race(Trace* trace, const Thread& t, int32_t site, uint64_t offset, uint32_t size, Access access) {
  uint16_t thread = (uint16_t)(t.warp * 32 + t.lane);
  bool atomic = access == Access::atomic;
  Cell now{site, t.epoch, t.warp_epoch, thread, atomic};
  for (uint64_t i = offset; i < offset + size && i < trace->shadow.size(); i++) {
    Shadow& s = trace->shadow[i];
    if (conflict(s.writer, t, thread, atomic)) trace->races[{s.writer.site, site}]++;
    if (access == Access::read) {
      if (s.reader.thread != thread) s.other = s.reader;
      s.reader = now;
    } else {
      if (conflict(s.reader, t, thread, atomic)) trace->races[{s.reader.site, site}]++;
      else if (conflict(s.other, t, thread, atomic)) trace->races[{s.other.site, site}]++;
      s.writer = now;
    }
  }
}

static void shared_request(SiteStat& s, const Request& r) {
  // Lanes go in phases of at most 128 bytes; in a phase every bank gives one word a cycle.
  uint32_t words = std::max<uint32_t>(1, s.size / 4), step = std::max<uint32_t>(1, 32 / words);
  uint64_t waves = 0, phases = 0;
  bool one_word = true;
  for (uint32_t i = 1; i < r.count; i++) one_word &= r.entries[i].place == r.entries[0].place;
  s.lines += one_word;  // of shared sites: requests of one word for all lanes
  for (uint32_t first = 0; first < r.count; first += step) {
    uint64_t seen[32][32];
    uint32_t used[32] = {0}, most = 1;
    for (uint32_t i = first; i < std::min(r.count, first + step); i++)
      for (uint32_t w = 0; w < words; w++) {
        uint64_t word = (r.entries[i].place & kAddress) / 4 + w;
        uint32_t bank = word & 31, k = 0;
        while (k < used[bank] && seen[bank][k] != word) k++;
        bool again = s.access == (uint32_t)Access::atomic && k < used[bank];
        if (k == used[bank] || again) {
          if (used[bank] < 32) {
            seen[bank][used[bank]] = again ? ~(uint64_t)0 - used[bank] : word;
            used[bank]++;
          }
          most = std::max(most, used[bank]);
        }
      }
    waves += most;
    phases++;
  }
  s.wavefronts += waves;
  s.conflicts += (waves - phases);
}

static void global_request(Trace* t, SiteStat& s, const Request& r) {
  struct Piece { uint64_t sector; uint32_t mask; };
  Piece pieces[32 * 2 + 64];
  uint32_t count = 0;
  uint64_t lines[128];
  uint32_t line_count = 0;
  for (uint32_t i = 0; i < r.count; i++) {
    uint64_t a = r.entries[i].place & kAddress;
    for (uint64_t sector = a / 32; sector <= (a + s.size - 1) / 32; sector++) {
      uint64_t from = std::max(a, sector * 32), to = std::min(a + s.size, sector * 32 + 32);
      uint32_t mask = (uint32_t)((((uint64_t)1 << (to - from)) - 1) << (from - sector * 32)), k = count;
      while (k > 0 && pieces[k - 1].sector != sector) k--;
      if (k > 0) pieces[k - 1].mask |= mask;
      else if (count < 96) pieces[count++] = {sector, mask};
    }
  }
  bool missed = false;
  uint32_t stands_for = r.entries[0].order >> 5 < kEvery ? 1 : kOneIn;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t sector = pieces[i].sector, line = sector / 4;
    uint32_t k = 0;
    while (k < line_count && lines[k] != line) k++;
    if (k == line_count && line_count < 128) lines[line_count++] = line;
    s.bytes += (uint64_t)__builtin_popcount(pieces[i].mask);  // what several lanes use counts once
    if (pieces[i].mask != 0xffffffffu) s.partial_sectors++;
    if (s.access == (uint32_t)Access::read) {
      // What the block wrote itself it finds in a cache.
      if (!t->written.count(sector)) t->read.try_emplace(sector, stands_for);
      if (!t->cache.touch(sector)) missed = true, s.missed_sectors++;
    } else {
      t->written.try_emplace(sector, stands_for);
      if (s.access == (uint32_t)Access::atomic) t->read.try_emplace(sector, stands_for);
    }
  }
  s.sectors += (uint64_t)count;
  s.lines += (uint64_t)line_count;
  s.missed_requests += missed;
}

static void atomic_request(Trace* t, SiteStat& s, const Request& r) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < r.count; i++) {
    uint64_t same = 0;
    for (uint32_t j = 0; j < r.count; j++) same += r.entries[j].place == r.entries[i].place;
    most = std::max(most, same);
    if ((s.space & 1) != 0) continue;
    uint64_t address = r.entries[i].place & kAddress;
    t->atomics[address] += 1;
    bool first_of_address = true, first_of_line = true;
    for (uint32_t j = 0; j < i; j++) {
      uint64_t other = r.entries[j].place & kAddress;
      first_of_address &= other != address;
      first_of_line &= other / 128 != address / 128;
    }
    AtomicLine& line = t->atomic_lines[address / 128];
    line.lanes++, line.addresses += first_of_address, line.requests += first_of_line;
  }
  s.same_address += most;
  s.same_address_most = std::max(s.same_address_most, most);
}

void trace_flush(Trace* t) {
  t->barriers++;
  if (!(t->mode & 2)) return;
  std::vector<std::vector<Request>> requests(t->logs.size());
  size_t longest = 0;
  for (size_t w = 0; w < t->logs.size(); w++) {
    auto& log = t->logs[w];
    uint32_t turns[32] = {0};
    for (Entry& entry : log) entry.turn = turns[entry.order & 31]++;
    std::sort(log.begin(), log.end(), [](const Entry& a, const Entry& b) {
      uint32_t x = a.order >> 5, y = b.order >> 5;
      return x != y ? x < y : a.site != b.site ? a.site < b.site : a.order < b.order;
    });
    for (size_t i = 0, j; i < log.size(); i = j) {
      for (j = i; j < log.size() && log[j].order >> 5 == log[i].order >> 5 && log[j].site == log[i].site; j++) {}
      uint32_t turn = log[i].turn;
      for (size_t k = i; k < j; k++) turn = std::max(turn, log[k].turn);
      requests[w].push_back({log[i].site, (uint32_t)(j - i), turn, &log[i]});
    }
    // In the order of the program: loops one after another, not their first turns together.
    std::stable_sort(requests[w].begin(), requests[w].end(), [](const Request& a, const Request& b) { return a.turn < b.turn; });
    longest = std::max(longest, requests[w].size());
  }
  for (size_t i = 0; i < longest; i++)  // warps take turns, as they do for the cache
    for (auto& list : requests) {
      if (i >= list.size()) continue;
      const Request& r = list[i];
      SiteStat& s = t->sites[r.site];
      s.space = (uint32_t)(r.entries[0].place >> 56);
      s.requests++;
      s.lanes += (uint64_t)r.count;
      if (s.space == (uint32_t)Space::shared || s.space == (uint32_t)Space::local) s.bytes += (uint64_t)r.count * s.size;
      if (s.space == (uint32_t)Space::shared) shared_request(s, r);
      else if (s.space == (uint32_t)Space::local) s.wavefronts += (uint64_t)std::max<uint32_t>(1, s.size / 4);
      else global_request(t, s, r);
      if (s.access == (uint32_t)Access::atomic) atomic_request(t, s, r);
    }
  for (auto& log : t->logs) log.clear();
}

static void add_regions(Trace* t) {
  std::map<int32_t, std::pair<uint64_t, uint64_t>> here;
  for (int written = 0; written < 2; written++)
    for (auto& [sector, stands_for] : written ? t->written : t->read) {
      const Allocation* found = find_allocation(sector * 32, 1);
      if (!found) found = find_allocation(sector * 32 + 31, 1);
      auto& entry = here[found ? found->id : -2];
      (written ? entry.second : entry.first) += stands_for;
    }
  for (auto& [id, sectors] : here) {
    RegionStat& region = results.regions[id];
    region.allocation = id;
    region.read += sectors.first * 32;
    region.written += sectors.second * 32;
    region.blocks++;
  }
}

// Where all lanes of a warp meet, those that ran less have waited for the one that ran most.
void trace_meet(Trace* t, uint32_t warp) {
  if (!t || !(t->mode & 2)) return;
  for (uint32_t n : t->run[warp]) {
    uint32_t* counts = &t->counts[warp][(uint64_t)n * 32];
    t->blocks[n].issues += *std::max_element(counts, counts + 32);
    for (uint32_t lane = 0; lane < 32; lane++) t->blocks[n].threads += counts[lane];
    std::fill_n(counts, 32, 0);
  }
  t->run[warp].clear();
}

static void add_counts(Trace* t) {
  for (uint32_t warp = 0; warp < t->run.size(); warp++) trace_meet(t, warp);
  for (uint32_t n = 0; n < t->basic_blocks; n++) {
    results.blocks[n].issues += t->blocks[n].issues;
    results.blocks[n].threads += t->blocks[n].threads;
  }
}

void trace_end(Trace* t) {
  if (t->mode & 2) trace_flush(t);
  std::lock_guard<std::mutex> lock(results.mutex);
  for (auto& [pair, count] : t->races) results.races[pair] += count;
  if (!(t->mode & 2)) return;
  results.sites.resize(std::max<size_t>(results.sites.size(), t->site_count));
  results.blocks.resize(std::max<size_t>(results.blocks.size(), t->basic_blocks));
  for (size_t i = 0; i < t->sites.size(); i++) {
    SiteStat& to = results.sites[i];
    const SiteStat& from = t->sites[i];
    if (!from.requests) continue;
    uint64_t most = std::max(to.same_address_most, from.same_address_most);
    uint64_t* a = &to.requests;
    const uint64_t* b = &from.requests;
    double scale = (double)t->seen[i] / (double)std::max<uint64_t>(1, t->logged[i]);
    for (int k = 0; k < 12; k++) a[k] += (uint64_t)((double)b[k] * scale + 0.5);
    to.same_address_most = most;
    to.space = from.space, to.access = from.access, to.size = from.size;
  }
  add_counts(t);
  add_regions(t);
  for (auto& [address, count] : t->atomics) {
    auto& entry = results.atomics[address];
    entry.first += count;
    entry.second++;
    results.totals.atomics += count;
  }
  for (auto& [number, from] : t->atomic_lines) {
    AtomicLine& to = results.atomic_lines[number];
    to.requests += from.requests, to.lanes += from.lanes, to.addresses += from.addresses, to.blocks++;
  }
  results.totals.blocks++;
  results.totals.warps += t->logs.size();
  results.totals.barriers += t->barriers - 1;
}

void trace_delete(Trace* t) { delete t; }
}  // namespace ks

using namespace ks;

extern "C" {
void ks_trace_access(Thread& t, int32_t site, uint64_t address, uint32_t size, int32_t space, int32_t access) {
  Trace* trace = t.trace;
  if (!trace) return;
  if (space == (int32_t)Space::shared && trace->mode & 1) check_race(trace, t, site, address, size, (Access)access);
  if (!(trace->mode & 2)) return;
  uint32_t n = trace->occurrences[t.warp][(uint64_t)site * 32 + t.lane]++;
  trace->seen[site]++;
  if (n >= kEvery && (n - kEvery) / kBurst % kOneIn != 0) return;
  trace->logged[site]++;
  if (space == (int32_t)Space::local) address -= (uint64_t)t.local;
  SiteStat& s = trace->sites[site];
  s.size = size;
  s.access = (uint32_t)access;
  trace->logs[t.warp].push_back({(uint64_t)space << 56 | (address & kAddress), (uint32_t)site, n << 5 | t.lane, 0});
}

void ks_trace_block(Thread& t, int32_t basic_block) {
  if (!t.trace || !(t.trace->mode & 2)) return;
  uint32_t* counts = &t.trace->counts[t.warp][(uint64_t)basic_block * 32];
  if (!counts[t.lane]++ && std::count(counts, counts + 32, 0u) == 31) t.trace->run[t.warp].push_back((uint32_t)basic_block);
}

void ks_trace_reset() {
  results.sites.clear();
  results.blocks.clear();
  results.regions.clear();
  results.races.clear();
  results.atomics.clear();
  results.atomic_lines.clear();
  results.totals = Totals{};
}

uint64_t ks_trace_sites(SiteStat* out, uint64_t room) {
  uint64_t n = std::min<uint64_t>(room, results.sites.size());
  std::copy_n(results.sites.begin(), n, out);
  return n;
}
uint64_t ks_trace_blocks(BlockStat* out, uint64_t room) {
  uint64_t n = std::min<uint64_t>(room, results.blocks.size());
  std::copy_n(results.blocks.begin(), n, out);
  return n;
}
uint64_t ks_trace_regions(RegionStat* out, uint64_t room) {
  uint64_t n = 0;
  for (auto& [id, region] : results.regions)
    if (n < room) out[n++] = region;
  return n;
}
uint64_t ks_trace_races(Race* out, uint64_t room) {
  uint64_t n = 0;
  for (auto& [pair, count] : results.races)
    if (n < room) out[n++] = {pair.first, pair.second, count};
  return n;
}
void ks_trace_totals(Totals* out) {
  *out = results.totals;
  for (auto& [address, entry] : results.atomics)
    if (entry.first > out->hot_atomics) out->hot_atomics = entry.first, out->hot_blocks = entry.second;
  for (auto& [number, line] : results.atomic_lines)
    if (line.lanes > out->line_lanes) {
      out->line_requests = line.requests, out->line_lanes = line.lanes;
      out->line_addresses = line.addresses, out->line_blocks = line.blocks;
    }
}
}
