#include "apps/cli/converted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/convert/printable.h"

namespace embertable::tools {

void add_format(CLI::App& command, std::string& word) {
  command.add_option("--format", word, "tf, npy or word2vec")
      ->required()
      ->check(CLI::IsMember({"tf", "npy", "word2vec"}));
}

jobs::TableFormat format_of(const std::string& word) {
  if (word == "tf") return jobs::TableFormat::kTensorFlow;
  return word == "npy" ? jobs::TableFormat::kNpy : jobs::TableFormat::kWord2vec;
}

void print_converted(const jobs::ConvertedArray& array, bool json) {
  if (json) {
    const nlohmann::ordered_json line = {
        {"name", array.name}, {"shape", array.shape}, {"place", array.place}};
    fmt::print("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    fmt::print("{}  [{}]  {}\n", jobs::printable(array.name), fmt::join(array.shape, ", "),
               jobs::printable(array.place));
  }
  std::fflush(stdout);
}

}  // namespace embertable::tools
