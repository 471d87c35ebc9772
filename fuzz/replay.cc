// A fuzz target without libFuzzer, for any compiler: runs it on files, or on its seeds and many
// small changes of them; or writes the seeds for libFuzzer.
//
//   manifest_fuzz_replay --changes NUMBER     seeds, and so many changes of each
//   manifest_fuzz_replay FILE...              these inputs
//   manifest_fuzz_replay --write-seeds DIR    one file for each seed

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "base/random.h"
#include "fuzz/target.h"
#include "testing/executor.h"

namespace embertable::fuzz {
namespace {

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

std::uint64_t below(std::uint64_t bits, std::size_t size) {
  return uniform_below(bits, static_cast<std::uint64_t>(size));
}

/// One to four changes: a flipped bit, another byte, a cut end, a piece that stands twice or is
/// gone.
std::string changed(std::string text, std::uint64_t test, std::uint64_t number) {
  const RandomRow random(test, number);
  const std::uint64_t changes = 1 + below(random.bits(0), 4);
  for (std::uint64_t i = 1; i <= changes && !text.empty(); ++i) {
    const auto at = static_cast<std::size_t>(below(random.bits(i, 1), text.size()));
    const auto length = static_cast<std::size_t>(
        below(random.bits(i, 2), std::min<std::size_t>(64, text.size() - at) + 1));
    switch (below(random.bits(i, 3), 5)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << below(random.bits(i, 4), 8)));
        break;
      case 1:
        text[at] = static_cast<char>(random.bits(i, 4));
        break;
      case 2:
        text.resize(at);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.erase(at, length);
        break;
    }
  }
  return text;
}

/// Throws std::invalid_argument for what is no integer >= 1.
std::uint64_t number_of_changes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0)
    throw std::invalid_argument("--changes must be an integer >= 1, got '" + std::string(text) +
                                "'");
  return number;
}

void run_changes(std::uint64_t changes) {
  const std::uint64_t test = test_seed();
  for (const std::string& seed : seeds()) {
    run(seed);
    for (std::uint64_t number = 0; number < changes; ++number) run(changed(seed, test, number));
  }
}

void write_seeds(const std::filesystem::path& directory) {
  int number = 0;
  for (const std::string& seed : seeds())
    std::ofstream(directory / ("seed-" + std::to_string(number++)), std::ios::binary) << seed;
}

void run_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  run({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

void main(int count, char** words) {
  if (count == 3 && std::strcmp(words[1], "--write-seeds") == 0) return write_seeds(words[2]);
  if (count == 3 && std::strcmp(words[1], "--changes") == 0)
    return run_changes(number_of_changes(words[2]));
  for (int i = 1; i < count; ++i) run_file(words[i]);
}

}  // namespace
}  // namespace embertable::fuzz

int main(int argc, char** argv) {
  try {
    embertable::fuzz::main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    return 1;
  }
}
