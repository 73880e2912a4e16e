#include "transcript_writer.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>

namespace recorder {
namespace {

constexpr size_t kFlushBytes = 1u << 20;
constexpr size_t kMaxOperations = 100000;
constexpr size_t kMaxHostBytes = 16u << 20;

int transcript_descriptor = -1;
std::string buffered;
std::set<std::string> noted;
size_t operations = 0;
size_t host_bytes = 0;

void write_all(const char* data, size_t size) {
  while (size > 0) {
    // The system call itself: `write` of the candidate's library must not stand in for it.
    const long written = syscall(SYS_write, transcript_descriptor, data, size);
    if (written <= 0) leave(75);
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void append_quoted(std::string& out, const std::string& value) {
  static const char digits[] = "0123456789abcdef";
  out += '"';
  for (const unsigned char c : value) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c > 0x7e) {
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      out += static_cast<char>(c);
    }
  }
  out += '"';
}

void append_hex(std::string& out, const void* data, size_t size) {
  static const char digits[] = "0123456789abcdef";
  const auto* bytes = static_cast<const unsigned char*>(data);
  out += '"';
  const size_t start = out.size();
  out.resize(start + 2 * size);
  for (size_t i = 0; i < size; ++i) {
    out[start + 2 * i] = digits[bytes[i] >> 4];
    out[start + 2 * i + 1] = digits[bytes[i] & 15];
  }
  out += '"';
}

}  // namespace

Line::Line(const char* operation) : text_("{\"op\":\"") {
  text_ += operation;
  text_ += '"';
}

void Line::key(const char* name) {
  text_ += ",\"";
  text_ += name;
  text_ += "\":";
}

Line& Line::text(const char* name, const std::string& value) {
  key(name);
  append_quoted(text_, value);
  return *this;
}

Line& Line::number(const char* name, uint64_t value) {
  key(name);
  text_ += std::to_string(value);
  return *this;
}

Line& Line::integer(const char* name, int64_t value) {
  key(name);
  text_ += std::to_string(value);
  return *this;
}

Line& Line::flag(const char* name, bool value) {
  key(name);
  text_ += value ? "true" : "false";
  return *this;
}

Line& Line::numbers(const char* name, const uint64_t* values, size_t count) {
  key(name);
  text_ += '[';
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text_ += ',';
    text_ += std::to_string(values[i]);
  }
  text_ += ']';
  return *this;
}

Line& Line::bytes(const char* name, const void* data, size_t size) {
  key(name);
  append_hex(text_, data, size);
  return *this;
}

Line& Line::open_list(const char* name) {
  key(name);
  text_ += '[';
  first_in_list_ = true;
  return *this;
}

Line& Line::list_bytes(const void* data, size_t size) {
  if (!first_in_list_) text_ += ',';
  first_in_list_ = false;
  append_hex(text_, data, size);
  return *this;
}

Line& Line::close_list() {
  text_ += ']';
  return *this;
}

void Line::write() {
  text_ += "}\n";
  buffered += text_;
  if (buffered.size() > kFlushBytes) flush_transcript();
}

bool open_transcript(int descriptor) {
  transcript_descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 100);
  return transcript_descriptor >= 0;
}

void flush_transcript() {
  write_all(buffered.data(), buffered.size());
  buffered.clear();
}

void note(const std::string& text) {
  if (noted.size() < 64 && noted.insert(text).second) Line("note").text("text", text).write();
}

void refuse(const std::string& reason, Direct direct) {
  Line("refuse")
      .text("reason", reason)
      .flag("direct", direct == Direct::possible)
      .flag("broken", direct == Direct::broken)
      .write();
  flush_transcript();
  leave(3);
}

void harness_failure(const std::string& reason) {
  Line("harness").text("reason", reason).write();
  flush_transcript();
  leave(70);
}

void leave(int code) {
  for (;;) syscall(SYS_exit_group, code);
}

void write_raw_line(const char* line, size_t size) { write_all(line, size); }

void count_operation() {
  if (++operations > kMaxOperations)
    refuse("the launcher asks for more than 100000 operations", Direct::possible);
}

void count_host_bytes(size_t size) {
  host_bytes += size;
  if (size > kMaxHostBytes || host_bytes > kMaxHostBytes)
    refuse("the launcher copies more than 16 MiB from host memory", Direct::possible);
}

}  // namespace recorder
