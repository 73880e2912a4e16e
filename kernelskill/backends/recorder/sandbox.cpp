#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#endif

#include <cstddef>
#include <vector>

#include "transcript_writer.h"

namespace recorder {
namespace {

constexpr uid_t kNobody = 65534;
constexpr rlim_t kAddressBytes = 1ull << 30;
constexpr rlim_t kFileBytes = 256ull << 20;

#if defined(__x86_64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the recorder knows the system calls of x86-64 and aarch64 only"
#endif

// Computing, memory, clocks, and reading files of an empty file system.
const int kAllowed[] = {
    SYS_read, SYS_pread64, SYS_readv, SYS_write, SYS_pwrite64, SYS_writev, SYS_close, SYS_lseek, SYS_fstat,
    SYS_newfstatat, SYS_statx, SYS_faccessat, SYS_readlinkat, SYS_getcwd, SYS_getdents64, SYS_fcntl, SYS_dup,
    SYS_pipe2, SYS_ppoll, SYS_pselect6, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_brk,
    SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres, SYS_gettimeofday,
    SYS_getrandom, SYS_sched_yield, SYS_sched_getaffinity, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid,
    SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getrusage, SYS_times, SYS_sysinfo, SYS_uname, SYS_rt_sigprocmask,
    SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall, SYS_exit, SYS_exit_group, SYS_membarrier,
#if defined(__x86_64__)
    SYS_stat, SYS_lstat, SYS_access, SYS_readlink, SYS_poll, SYS_select, SYS_pipe, SYS_time,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
};

struct Denied {
  int call;
  int error;
};

// Calls that ordinary programs make in passing and live without.
const Denied kDenied[] = {
    {SYS_ioctl, ENOTTY},          {SYS_prctl, EPERM},           {SYS_sched_setaffinity, EPERM},
    {SYS_mbind, ENOSYS},          {SYS_get_mempolicy, ENOSYS},  {SYS_set_mempolicy, ENOSYS},
    {SYS_mlock, EPERM},           {SYS_munlock, EPERM},         {SYS_unlinkat, EROFS},
    {SYS_mkdirat, EROFS},         {SYS_renameat2, EROFS},       {SYS_ftruncate, EROFS},
    {SYS_fallocate, EROFS},       {SYS_statfs, ENOENT},         {SYS_fstatfs, ENOSYS},
    {SYS_memfd_create, EPERM},    {SYS_getpriority, EPERM},     {SYS_setpriority, EPERM},
#if defined(__x86_64__)
    {SYS_unlink, EROFS},          {SYS_mkdir, EROFS},           {SYS_rename, EROFS},
    {SYS_arch_prctl, EPERM},      {SYS_setrlimit, EPERM},
#endif
#ifdef SYS_rseq
    {SYS_rseq, EPERM},
#endif
#ifdef SYS_openat2
    {SYS_openat2, ENOSYS},
#endif
};

// Builds a seccomp program, one test of the call number at a time.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    add(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1));  // the x32 numbering
    answer(SECCOMP_RET_KILL_PROCESS);
#endif
  }

  void on(int call, unsigned result) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
    answer(result);
  }

  // Opening for anything but reading is an error.
  void on_open(int call, unsigned flags_argument) {
    constexpr unsigned kWriting = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4));
    load(argument(flags_argument));
    add(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kWriting, 0, 1));
    answer(SECCOMP_RET_ERRNO | EROFS);
    answer(SECCOMP_RET_ALLOW);
  }

  // Only where both halves of an argument are zero.
  void on_null(int call, unsigned index) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 6));
    load(argument(index));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3));
    load(argument(index) + 4);
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | EPERM);
  }

  // Handlers of the signals that report a fault stay ours.
  void on_sigaction() {
    const unsigned ours[] = {SIGSYS, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    constexpr unsigned count = sizeof ours / sizeof ours[0];
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, count + 3));
    load(argument(0));
    for (unsigned i = 0; i < count; ++i)
      add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ours[i], static_cast<unsigned char>(count - i), 0));
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | EPERM);
  }

  // A process may send signals to itself, as abort() does.
  void on_own_signal(unsigned process) {
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4));
    load(argument(0));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, process, 0, 1));
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_TRAP);
  }

  void otherwise(unsigned result) { answer(result); }

  bool install() {
    sock_fprog program = {static_cast<unsigned short>(code_.size()), code_.data()};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  }

 private:
  static unsigned argument(unsigned index) {
    return static_cast<unsigned>(offsetof(seccomp_data, args)) + 8 * index;  // little-endian: the low half
  }
  void add(sock_filter step) { code_.push_back(step); }
  void load(unsigned offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void answer(unsigned result) { add(BPF_STMT(BPF_RET | BPF_K, result)); }

  std::vector<sock_filter> code_;
};

void forbid_system_calls() {
  Filter filter;
  for (const int call : kAllowed) filter.on(call, SECCOMP_RET_ALLOW);
  for (const Denied& denied : kDenied) filter.on(denied.call, SECCOMP_RET_ERRNO | static_cast<unsigned>(denied.error));
#if defined(__x86_64__)
  filter.on_open(SYS_open, 1);
#endif
  filter.on_open(SYS_openat, 2);
  filter.on_null(SYS_prlimit64, 2);
  filter.on_sigaction();
  filter.on_own_signal(static_cast<unsigned>(getpid()));
  filter.otherwise(SECCOMP_RET_TRAP);
  if (!filter.install()) harness_failure("the kernel refuses the system call filter (seccomp)");
}

bool change_root(const std::string& root) { return chroot(root.c_str()) == 0 && chdir("/") == 0; }

// Only the files of `root` can be opened, by a rule of the kernel that needs no rights.
bool confine_by_rule(const std::string& root) {
#ifdef LANDLOCK_ACCESS_FS_READ_FILE
  landlock_ruleset_attr rules = {};
  rules.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
  const long ruleset = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules.handled_access_fs, 0);
  if (ruleset < 0) return false;
  landlock_path_beneath_attr folder = {};
  folder.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;
  folder.parent_fd = open(root.c_str(), O_PATH | O_CLOEXEC);
  const bool confined =
      folder.parent_fd >= 0 &&
      syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &folder, 0) == 0 &&
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  close(folder.parent_fd);
  close(static_cast<int>(ruleset));
  return confined;
#else
  (void)root;
  return false;
#endif
}

void become_nobody() {
  if (setgroups(0, nullptr) != 0 || setresgid(kNobody, kNobody, kNobody) != 0 ||
      setresuid(kNobody, kNobody, kNobody) != 0)
    harness_failure("the recorder cannot become an unprivileged user");
}

void drop_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  syscall(SYS_capset, &header, none);
}

// Returns the path of the root's files. As root: an empty root and another user. Otherwise an empty root in a
// user namespace; where that is not permitted, a rule of Landlock, which hides contents but not names.
std::string confine_files(const std::string& root) {
  if (geteuid() == 0) {
    if (change_root(root)) {
      become_nobody();
      return "";
    }
    if (confine_by_rule(root)) {
      become_nobody();
      return root;
    }
  } else {
    if (unshare(CLONE_NEWUSER) == 0 && change_root(root)) {
      drop_capabilities();
      return "";
    }
    if (confine_by_rule(root)) return root;
  }
  harness_failure("host code cannot be kept from the files of this machine: neither chroot, nor Landlock, nor user "
                  "namespaces are permitted");
}

int output_pipe[2] = {-1, -1};

// What the launcher prints goes into a pipe that nobody reads: nothing comes out, and too much of it shows.
void swallow_output(int nothing) {
  const bool made = pipe2(output_pipe, O_NONBLOCK | O_CLOEXEC) == 0;
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) dup2(made ? output_pipe[1] : nothing, standard);
}

void limit(int resource, rlim_t value) {
  const rlimit both = {value, value};
  setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

}  // namespace

bool output_overflowed() {
  pollfd end = {output_pipe[1], POLLOUT, 0};
  return output_pipe[1] >= 0 && poll(&end, 1, 0) == 0;
}

std::string enter_sandbox(const std::string& root, unsigned long cpu_seconds) {
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nothing, STDIN_FILENO);
  swallow_output(nothing);
  close(nothing);
  const std::string prefix = confine_files(root);
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    harness_failure("the recorder cannot give up its rights");
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  limit(RLIMIT_CPU, cpu_seconds);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_AS, kAddressBytes);
  limit(RLIMIT_FSIZE, kFileBytes);
  limit(RLIMIT_NOFILE, 128);
  forbid_system_calls();
  return prefix;
}

}  // namespace recorder
