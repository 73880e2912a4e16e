// Host memory that the candidate's code takes from the heap and keeps, told apart from the recorder's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace recorder {

// While one of these lives, code outside the recorder runs: what it allocates is the candidate's.
class CandidateCode {
 public:
  CandidateCode();
  ~CandidateCode();
  CandidateCode(const CandidateCode&) = delete;
  CandidateCode& operator=(const CandidateCode&) = delete;

 private:
  int depth_;
};

struct Chunk {
  uint64_t start;
  size_t size;
  uint64_t serial;  // tells a chunk from an earlier one at the same place
};

// The candidate's chunks that are not freed, by address.
std::vector<Chunk> candidate_chunks();

// Counts memory as the candidate's that the runtime gives it, such as pinned memory.
void give_to_candidate(void* start, size_t size);

// Whether there were more chunks than are followed.
bool lost_count_of_chunks();

}  // namespace recorder
