#include "embertable/tensorflow/sequential_scope.h"

namespace embertable {
namespace {

thread_local bool sequential = false;

}  // namespace

SequentialScope::SequentialScope() noexcept : before_(sequential) { sequential = true; }
SequentialScope::~SequentialScope() { sequential = before_; }
bool SequentialScope::active() noexcept { return sequential; }

}  // namespace embertable
