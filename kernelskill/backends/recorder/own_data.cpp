#include "own_data.h"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "device_memory.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr size_t kMostBytes = 64u << 20;  // larger tables are read only
constexpr uint64_t kFirstHostAddress = 0x5500ull << 32;
constexpr uint64_t kEndOfAddresses = 1ull << 47;

struct Search {
  const std::string& path;
  const char* ending;  // of the names of other libraries that count
  std::vector<std::pair<const uint64_t*, size_t>> found;
  std::pair<const uint64_t*, size_t> of_thread = {nullptr, 0};
};

int look(dl_phdr_info* library, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  const char* name = library->dlpi_name;
  if (name == nullptr || (search.path != name && std::strstr(name, search.ending) == nullptr)) return 0;
  for (int n = 0; n < library->dlpi_phnum; ++n) {
    const ElfW(Phdr)& part = library->dlpi_phdr[n];
    if (part.p_type == PT_TLS && part.p_memsz <= kMostBytes && search.path == name)
      search.of_thread = {static_cast<const uint64_t*>(library->dlpi_tls_data), (part.p_memsz + 7) / 8};
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_W) || part.p_memsz > kMostBytes) continue;
    const uint64_t start = (library->dlpi_addr + part.p_vaddr + 7) & ~7ull;
    const uint64_t end = library->dlpi_addr + part.p_vaddr + part.p_memsz;
    if (end > start) search.found.emplace_back(reinterpret_cast<const uint64_t*>(start), (end - start) / 8);
  }
  return 0;
}

int look_at_images(dl_phdr_info* library, size_t, void* data) {
  auto& images = *static_cast<std::vector<std::pair<uint64_t, uint64_t>>*>(data);
  if (library->dlpi_name == nullptr || library->dlpi_name[0] == 0) return 0;  // the recorder: its handles may differ
  for (int n = 0; n < library->dlpi_phnum; ++n) {
    const ElfW(Phdr)& part = library->dlpi_phdr[n];
    const uint64_t start = library->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) images.emplace_back(start, start + part.p_memsz);
  }
  return 0;
}

bool is_address(uint64_t word) {
  if (word >= kFirstHostAddress && word < kEndOfAddresses) return true;
  return is_device_address(reinterpret_cast<const void*>(word));
}

}  // namespace

OwnData::OwnData(const std::string& path, const std::vector<const uint64_t*>& others) : path_(path) {
  Search search{path_, "/libstdc++.so", {}};
  dl_iterate_phdr(look, &search);
  for (const auto& [words, count] : search.found) add(words, count);
  for (FILE* file : {stdout, stderr}) add(reinterpret_cast<const uint64_t*>(file), sizeof *file / 8);
  for (const uint64_t* word : others) add(word, 1);
  dl_iterate_phdr(look_at_images, &images_);
  changed_since_last_look();
}

void OwnData::add(const uint64_t* words, size_t count) { spans_.push_back({words, count, {words, words + count}}); }

void OwnData::find_thread_data() {
  if (has_thread_data_) return;
  Search search{path_, "/", {}};
  dl_iterate_phdr(look, &search);
  has_thread_data_ = search.of_thread.first != nullptr;
  if (has_thread_data_) add(search.of_thread.first, search.of_thread.second);
}

bool OwnData::leads_into_kept(uint64_t word) const {
  for (const auto& [start, end] : images_)
    if (word >= start && word <= end) return true;
  auto above = heap_.upper_bound(word);
  if (above == heap_.begin()) return false;
  const auto& [start, kept] = *--above;
  return word < start + 8 * kept.seen.size();
}

uint64_t OwnData::changed(const uint64_t* words, std::vector<uint64_t>& seen) const {
  uint64_t count = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const uint64_t now = words[i], before = seen[i];
    if (now == before) continue;
    seen[i] = now;
    const bool addresses = is_address(now) || is_address(before);
    if (!addresses || (leads_into_kept(now) && leads_into_kept(before))) ++count;
  }
  return count;
}

bool OwnData::is_reachable(const Chunk& chunk, const std::vector<Chunk>& chunks) const {
  const auto leads_there = [&](const uint64_t* words, size_t count) {
    return std::any_of(words, words + count,
                       [&](uint64_t word) { return word >= chunk.start && word < chunk.start + chunk.size; });
  };
  for (const Span& span : spans_)
    if (leads_there(span.words, span.count)) return true;
  for (const Chunk& other : chunks)
    if (other.serial != chunk.serial && leads_there(reinterpret_cast<const uint64_t*>(other.start), other.size / 8))
      return true;
  return false;
}

uint64_t OwnData::changed_since_last_look() {
  find_thread_data();
  uint64_t count = 0;
  for (Span& span : spans_) count += changed(span.words, span.seen);
  const std::vector<Chunk> chunks = candidate_chunks();
  std::map<uint64_t, Kept> heap;
  size_t bytes = 0;
  bool added = false;
  for (const Chunk& chunk : chunks) {
    const auto* words = reinterpret_cast<const uint64_t*>(chunk.start);
    const size_t followed = std::min(chunk.size, kMostBytes);
    const auto known = heap_.find(chunk.start);
    bytes += chunk.size;
    if (known != heap_.end() && known->second.serial == chunk.serial) {
      count += changed(words, known->second.seen);
      heap.emplace(chunk.start, known->second);
    } else {
      added = added || is_reachable(chunk, chunks);
      heap.emplace(chunk.start, Kept{chunk.serial, {words, words + (followed + 7) / 8}});
    }
  }
  count += added && bytes > heap_bytes_ ? 1 : 0;
  heap_.swap(heap);
  heap_bytes_ = bytes;
  return count;
}

}  // namespace recorder
