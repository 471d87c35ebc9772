#include "apps/cli/converted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/convert/printable.h"

namespace embertable::tools {

void add_format(CLI::App& command, std::string& word, bool with_int8) {
  std::vector<std::string> words = {"tf", "npy", "word2vec"};
  if (with_int8) words.emplace_back("int8");
  command
      .add_option("--format", word,
                  with_int8 ? "tf, npy, word2vec, or int8: a checkpoint to serve, dim + 8 "
                              "bytes a row"
                            : "tf, npy or word2vec")
      ->required()
      ->check(CLI::IsMember(words));
}

jobs::TableFormat format_of(const std::string& word) {
  if (word == "tf") return jobs::TableFormat::kTensorFlow;
  if (word == "int8") return jobs::TableFormat::kInt8;
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
