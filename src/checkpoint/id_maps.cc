#include "checkpoint/id_maps.h"

#include "embertable/errors.h"

namespace embertable::checkpoint {

std::map<std::string, IdMap> read_id_maps(const Reader& reader) {
  std::map<std::string, IdMap> maps;
  for (const auto& [name, bytes] : reader.id_maps()) {
    try {
      maps.emplace(name, IdMap::from_bytes(bytes));
    } catch (const DataLoss& loss) {
      throw DataLoss(reader.directory().string() + ": id map '" + name + "': " + loss.what());
    }
  }
  return maps;
}

}  // namespace embertable::checkpoint
