// What the host object remembers: its own writable memory, looked at between calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace recorder {

class OwnData {
 public:
  // Looks at the writable memory of the library loaded from a path.
  explicit OwnData(const std::string& path);

  // How many words differ from the last look; words that hold addresses, then or now, do not count.
  uint64_t changed_since_last_look();

 private:
  struct Span {
    const uint64_t* words;
    size_t count;
    std::vector<uint64_t> seen;
  };
  void add(const uint64_t* words, size_t count);
  // The calling thread's variables of the library; they are made when they are first used.
  void find_thread_data();

  std::string path_;
  bool has_thread_data_ = false;
  std::vector<Span> spans_;
};

}  // namespace recorder
