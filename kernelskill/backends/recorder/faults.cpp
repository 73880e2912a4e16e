#include "faults.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdio>

#include "device_memory.h"
#include "errors.h"
#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr size_t kStackBytes = 65536;

void on_fault(int signal, siginfo_t* info, void*) {
  char line[200];
  int size = 0;
  if (signal == SIGSYS)
    size = std::snprintf(line, sizeof line, "\n{\"op\":\"system_call\",\"number\":%d}\n", info->si_syscall);
  else
    size = std::snprintf(line, sizeof line, "\n{\"op\":\"fault\",\"signal\":%d,\"device_memory\":%s}\n", signal,
                         signal == SIGSEGV && is_device_address(info->si_addr) ? "true" : "false");
  write_raw_line(line, static_cast<size_t>(size));
  leave(4);
}

}  // namespace

void report_faults() {
  stack_t stack = {};
  stack.ss_size = kStackBytes;
  stack.ss_sp = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(signal, &action, nullptr);
}

}  // namespace recorder

// Every standard way to start a thread ends here; the bare system call ends in the filter.
RECORDER_API int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) noexcept {
  recorder::refuse("the launcher starts a host thread: what it does there would escape the recording",
                   recorder::Direct::impossible);
}
