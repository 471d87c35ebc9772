#pragma once

#include <string>

namespace embertable::bench {

/// The processor as the system names it and how many threads it runs, "AMD EPYC 9354, 2 threads".
std::string machine_name();

}  // namespace embertable::bench
