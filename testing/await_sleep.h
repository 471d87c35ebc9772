#pragma once

// For tests: waits until another thread of this process waits.

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace embertable {

inline pid_t this_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// Returns once the kernel has seen the thread asleep three times in a row. `thread`: its number,
/// which it sets itself (this_thread); below 0 before.
inline void await_sleep(const std::atomic<pid_t>& thread) {
  for (int asleep = 0; asleep < 3;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::ifstream stat("/proc/self/task/" + std::to_string(thread.load()) + "/stat");
    std::string text;
    std::getline(stat, text);
    const std::size_t name_ends = text.rfind(") ");
    asleep = name_ends != std::string::npos && text[name_ends + 2] == 'S' ? asleep + 1 : 0;
  }
}

}  // namespace embertable
