#include "base/interruption.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace embertable {
namespace {

void end_it() { throw std::runtime_error("ended"); }

TEST(Interruption, AsksTheInnermostCheckOfTheThread) {
  EXPECT_NO_THROW(Interruption::ask());
  {
    const Interruption outer(end_it);
    EXPECT_THROW(Interruption::ask(), std::runtime_error);
    {
      const Interruption none(nullptr);
      EXPECT_NO_THROW(Interruption::ask());
    }
    EXPECT_THROW(Interruption::ask(), std::runtime_error);
    std::thread([] { EXPECT_NO_THROW(Interruption::ask()); }).join();
  }
  EXPECT_NO_THROW(Interruption::ask());
}

}  // namespace
}  // namespace embertable
