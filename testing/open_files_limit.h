#pragma once

#include <sys/resource.h>

namespace embertable {

/// For tests: while this lives, the process may open no more files than this at once.
class OpenFilesLimit {
 public:
  explicit OpenFilesLimit(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit low{files, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~OpenFilesLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFilesLimit(const OpenFilesLimit&) = delete;
  OpenFilesLimit& operator=(const OpenFilesLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace embertable
