#include "variable/assign_values.h"

#include <cstddef>

namespace embertable {

void assign_values(const CheckpointVariables& variables,
                   const std::vector<std::vector<Tensor>>& values) {
  auto of_one = values.begin();
  for (const auto& entry : variables) {
    for (std::size_t i = 0; i < of_one->size(); ++i) {
      Variable component = entry.second.components()[i];
      component.assign((*of_one)[i]);
    }
    ++of_one;
  }
}

}  // namespace embertable
