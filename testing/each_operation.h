#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

#include "embertable/errors.h"
#include "testing/memory_files.h"
#include "testing/sanitized.h"

namespace embertable::checkpoint {

/// For tests: runs `attempt` on copies of `before`, failing at each of its operations, and looks at
/// what is left after each kind of end.
inline void at_each_operation(const MemoryFiles& before,
                              const std::function<void(FileSystem&)>& attempt,
                              const std::function<void(MemoryFiles& left, bool succeeded)>& check) {
  const auto trial = before.copy();
  trial->heal();
  attempt(*trial);
  const std::int64_t operations = trial->operations();
  ASSERT_GT(operations, 10);
  for (std::int64_t i = 0; i <= operations; i += kSanitized ? 3 : 1) {
    for (const auto fault : {MemoryFiles::Fault::kError, MemoryFiles::Fault::kKill}) {
      SCOPED_TRACE("operation " + std::to_string(i));
      const auto files = before.copy();
      files->fail_at(i, fault);
      bool succeeded = true;
      try {
        attempt(*files);
      } catch (const IoError&) {
        succeeded = false;
      }
      for (const auto loss : {MemoryFiles::Loss::kUnsynced, MemoryFiles::Loss::kContents,
                              MemoryFiles::Loss::kUpperNames}) {
        const auto left = files->copy();
        left->lose_power(loss);
        check(*left, succeeded);
      }
      files->heal();
      check(*files, succeeded);
    }
  }
}

}  // namespace embertable::checkpoint
