// What host code can remember from one call to the next: its static and thread data, what it keeps of the heap, and
// the objects of the libraries that it is handed. All of it is looked at between calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "own_heap.h"

namespace recorder {

class OwnData {
 public:
  // Looks at the writable memory of the library loaded from a path, and at some words beside.
  OwnData(const std::string& path, const std::vector<const uint64_t*>& others);

  // How many words differ from the last look. Addresses may differ, then or now, unless they lead into memory that
  // was there before: that is counting with pointers. One more for memory that was added to what is kept.
  uint64_t changed_since_last_look();

 private:
  struct Span {
    const uint64_t* words;
    size_t count;
    std::vector<uint64_t> seen;
  };
  struct Kept {
    uint64_t serial;
    std::vector<uint64_t> seen;
  };
  void add(const uint64_t* words, size_t count);
  uint64_t changed(const uint64_t* words, std::vector<uint64_t>& seen) const;
  bool leads_into_kept(uint64_t word) const;
  bool is_reachable(const Chunk& chunk, const std::vector<Chunk>& chunks) const;
  // The calling thread's variables of the library; they are made when they are first used.
  void find_thread_data();

  std::string path_;
  bool has_thread_data_ = false;
  std::vector<Span> spans_;
  std::vector<std::pair<uint64_t, uint64_t>> images_;  // of the loaded libraries, with what is read only
  std::map<uint64_t, Kept> heap_;  // by address, as of the last look
  size_t heap_bytes_ = 0;
};

}  // namespace recorder
