#include "apps/jobs/spec/choice.h"

#include <fmt/format.h>

#include "base/nearest.h"

namespace embertable::jobs {

std::string must_be_one_of(const std::vector<std::string>& names, std::string_view given) {
  return fmt::format("must be one of {}, got \"{}\"; the nearest is '{}'", fmt::join(names, ", "),
                     given, nearest(given, names));
}

std::string_view nearest(std::string_view given, const std::vector<std::string>& names) {
  return nearest_name(given, std::vector<std::string_view>(names.begin(), names.end()));
}

}  // namespace embertable::jobs
