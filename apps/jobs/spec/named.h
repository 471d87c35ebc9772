#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/did_you_mean.h"
#include "embertable/errors.h"

namespace embertable::jobs {

template <class Spec>
std::vector<std::string> names_of(const std::vector<Spec>& specs) {
  std::vector<std::string> names;
  for (const Spec& spec : specs) names.push_back(spec.name);
  return names;
}

/// Returns the element of that name. Throws KeyError if there is none.
template <class Spec>
const Spec& named(const std::vector<Spec>& specs, std::string_view name) {
  for (const Spec& spec : specs) {
    if (spec.name == name) return spec;
  }
  throw KeyError("a name " + must_be_one_of(names_of(specs), name));
}

}  // namespace embertable::jobs
