// The transcript: one JSON object a line, written to a private descriptor, read by transcript.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace recorder {

// What becomes of a launcher on a real GPU that cannot be recorded: it could run there, it may not, or it
// breaks there too.
enum class Direct { possible, impossible, broken };

// One line of the transcript, built field by field.
class Line {
 public:
  explicit Line(const char* operation);
  Line& text(const char* key, const std::string& value);
  Line& number(const char* key, uint64_t value);
  Line& integer(const char* key, int64_t value);
  Line& flag(const char* key, bool value);
  Line& numbers(const char* key, const uint64_t* values, size_t count);
  Line& bytes(const char* key, const void* data, size_t size);
  Line& open_list(const char* key);
  Line& list_bytes(const void* data, size_t size);
  Line& close_list();
  void write();

 private:
  void key(const char* name);
  std::string text_;
  bool first_in_list_ = false;
};

// Takes a descriptor for the transcript and moves it out of the low numbers.
bool open_transcript(int descriptor);
void flush_transcript();

// Adds a fact that people should know; equal notes are written once.
void note(const std::string& text);

// Ends the recording: this launcher cannot become a plan.
[[noreturn]] void refuse(const std::string& reason, Direct direct);

// Ends the recording because of our own machinery.
[[noreturn]] void harness_failure(const std::string& reason);

// Ends the process without running anything of the candidate's.
[[noreturn]] void leave(int code);

// For signal handlers: writes one line without allocating. Texts must need no escaping.
void write_raw_line(const char* line, size_t size);

// Counts one operation and refuses a launcher that asks for too many.
void count_operation();
// Counts bytes of host memory that travel inside the plan.
void count_host_bytes(size_t size);

}  // namespace recorder
