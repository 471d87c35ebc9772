#pragma once

#include <map>
#include <string>

#include "checkpoint/reader.h"
#include "embertable/id_map.h"

namespace embertable::checkpoint {

/// Returns the id maps of a saved step by name. Throws IoError; DataLoss naming directory and map.
std::map<std::string, IdMap> read_id_maps(const Reader& reader);

}  // namespace embertable::checkpoint
