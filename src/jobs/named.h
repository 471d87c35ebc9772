#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace embertable::jobs {

/// The element of that name, which must exist.
template <class Spec>
const Spec& named(const std::vector<Spec>& specs, std::string_view name) {
  for (const Spec& spec : specs) {
    if (spec.name == name) return spec;
  }
  return specs.front();
}

template <class Spec>
std::vector<std::string> names_of(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) names.push_back(spec.name);
  return names;
}

}  // namespace embertable::jobs
