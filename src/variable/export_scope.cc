#include "embertable/variables/export_scope.h"

namespace embertable {
namespace {

thread_local int scopes_of_thread = 0;

}  // namespace

ExportScope::ExportScope() noexcept { ++scopes_of_thread; }
ExportScope::~ExportScope() { --scopes_of_thread; }
bool ExportScope::active() noexcept { return scopes_of_thread > 0; }

}  // namespace embertable
