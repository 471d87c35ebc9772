#include "base/interruption.h"

#include <utility>

namespace embertable {
namespace {

thread_local void (*check_of_thread)() = nullptr;

}  // namespace

Interruption::Interruption(void (*check)()) noexcept
    : outer_(std::exchange(check_of_thread, check)) {}

Interruption::~Interruption() { check_of_thread = outer_; }

void Interruption::ask() {
  if (check_of_thread != nullptr) check_of_thread();
}

}  // namespace embertable
