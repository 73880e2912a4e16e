#include "own_data.h"

#include <link.h>

#include "device_memory.h"

namespace recorder {
namespace {

constexpr size_t kMostBytes = 64u << 20;  // larger tables are read only
constexpr uint64_t kFirstHostAddress = 0x5500ull << 32;
constexpr uint64_t kEndOfAddresses = 1ull << 47;

struct Search {
  const std::string& path;
  std::vector<std::pair<const uint64_t*, size_t>> found;
  std::pair<const uint64_t*, size_t> of_thread = {nullptr, 0};
};

int look(dl_phdr_info* library, size_t, void* data) {
  Search& search = *static_cast<Search*>(data);
  if (library->dlpi_name == nullptr || search.path != library->dlpi_name) return 0;
  for (int n = 0; n < library->dlpi_phnum; ++n) {
    const ElfW(Phdr)& part = library->dlpi_phdr[n];
    if (part.p_type == PT_TLS && part.p_memsz <= kMostBytes)
      search.of_thread = {static_cast<const uint64_t*>(library->dlpi_tls_data), (part.p_memsz + 7) / 8};
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_W) || part.p_memsz > kMostBytes) continue;
    const uint64_t start = (library->dlpi_addr + part.p_vaddr + 7) & ~7ull;
    const uint64_t end = library->dlpi_addr + part.p_vaddr + part.p_memsz;
    if (end > start) search.found.emplace_back(reinterpret_cast<const uint64_t*>(start), (end - start) / 8);
  }
  return 1;
}

bool is_address(uint64_t word) {
  if (word >= kFirstHostAddress && word < kEndOfAddresses) return true;
  return is_device_address(reinterpret_cast<const void*>(word));
}

}  // namespace

OwnData::OwnData(const std::string& path) : path_(path) {
  Search search{path_, {}};
  dl_iterate_phdr(look, &search);
  for (const auto& [words, count] : search.found) add(words, count);
}

void OwnData::add(const uint64_t* words, size_t count) { spans_.push_back({words, count, {words, words + count}}); }

void OwnData::find_thread_data() {
  if (has_thread_data_) return;
  Search search{path_, {}};
  dl_iterate_phdr(look, &search);
  has_thread_data_ = search.of_thread.first != nullptr;
  if (has_thread_data_) add(search.of_thread.first, search.of_thread.second);
}

uint64_t OwnData::changed_since_last_look() {
  find_thread_data();
  uint64_t changed = 0;
  for (Span& span : spans_)
    for (size_t i = 0; i < span.count; ++i) {
      const uint64_t now = span.words[i], before = span.seen[i];
      if (now == before) continue;
      span.seen[i] = now;
      if (!is_address(now) && !is_address(before)) ++changed;
    }
  return changed;
}

}  // namespace recorder
