#pragma once

#include <pthread.h>

#include <cstddef>

namespace embertable {

/// For tests: while it lives, no thread of this process can be started, since new ones ask for
/// stacks that no machine has.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t changed;
    pthread_getattr_default_np(&changed);
    pthread_attr_setstacksize(&changed, std::size_t{1} << 60);
    pthread_setattr_default_np(&changed);
    pthread_attr_destroy(&changed);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

}  // namespace embertable
