#include "apps/selftest/selftest.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/cli/commands.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/numbers.h"

namespace embertable::tools {
namespace {

/// Returns one digest, or one for each level if they differ.
std::string digest_text(const selftest::Report& report, const selftest::Line& line) {
  std::string text;
  bool equal = true;
  for (std::size_t i = 0; i < line.digests.size(); ++i) {
    equal = equal && line.digests[i] == line.digests[0];
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", report.levels[i], line.digests[i]);
  }
  return equal && !line.digests.empty() ? line.digests[0] : text;
}

void print_lines(const selftest::Report& report, const char* what,
                 const std::vector<selftest::Line>& lines) {
  fmt::print("\n{:<24} {:>7} {:>8} {:>9}  {:<32}\n", what, "vectors", "programs", "deviation",
             "digest");
  for (const selftest::Line& line : lines)
    fmt::print("{:<24} {:>7} {:>8} {:>9.2f}  {:<32}  {}\n", line.name, line.vectors, line.programs,
               line.worst, digest_text(report, line), line.ok() ? "ok" : "DEVIATES");
}

void print_text(const selftest::Report& report) {
  fmt::print("embertable {}, numerics {}, {}\n{}, levels {}\n", report.version, report.numerics,
             report.compiler, report.cpu, fmt::join(report.levels, " "));
  print_lines(report, "rule", report.rules);
  print_lines(report, "combiner", report.combiners);
  fmt::print(
      "\nEach line covers every level. Deviation: the largest, in units of the allowed binary32 "
      "error.\nDigest: hash of all rows and slots after the programs, equal on every machine.\n");
  std::int64_t failures = 0;
  for (const auto* lines : {&report.rules, &report.combiners})
    for (const selftest::Line& line : *lines)
      for (const std::string& failure : line.failures) {
        fmt::print("{}\n", failure);
        ++failures;
      }
  fmt::print("{}\n", failures == 0 ? "all ok" : counted(failures, "deviation"));
}

nlohmann::ordered_json lines_json(const selftest::Report& report,
                                  const std::vector<selftest::Line>& lines) {
  nlohmann::ordered_json json = nlohmann::json::array();
  for (const selftest::Line& line : lines) {
    nlohmann::ordered_json digests = nlohmann::json::object();
    for (std::size_t i = 0; i < line.digests.size(); ++i)
      digests[report.levels[i]] = line.digests[i];
    json.push_back({{"name", line.name},
                    {"vectors", line.vectors},
                    {"programs", line.programs},
                    {"deviation", line.worst},
                    {"digests", digests},
                    {"failures", line.failures},
                    {"ok", line.ok()}});
  }
  return json;
}

void print_json(const selftest::Report& report) {
  const nlohmann::ordered_json json = {{"embertable", report.version},
                                       {"numerics", report.numerics},
                                       {"compiler", report.compiler},
                                       {"cpu", report.cpu},
                                       {"levels", report.levels},
                                       {"rules", lines_json(report, report.rules)},
                                       {"combiners", lines_json(report, report.combiners)},
                                       {"ok", report.ok()}};
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void add_selftest(CLI::App& app, Invocation& invocation) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "selftest",
      "Check every optimizer and combiner on this machine; exit code 1 if one deviates");
  command->add_flag("--json", *json, "print one JSON object");
  command->callback([json, &invocation] {
    const selftest::Report report = selftest::run();
    *json ? print_json(report) : print_text(report);
    if (!report.ok()) invocation.exit_code = kFailed;
  });
}

}  // namespace embertable::tools
