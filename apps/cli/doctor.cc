#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/convert/printable.h"
#include "apps/doctor/findings.h"

namespace embertable::tools {
namespace {

using doctor::Finding;

void print_text(const std::vector<Finding>& findings) {
  std::int64_t bad = 0;
  for (const Finding& finding : findings) {
    fmt::print("{:<6} {:<11} {}\n", finding.good() ? "good" : "CHANGE", finding.subject,
               jobs::printable(finding.found));
    if (finding.good()) continue;
    ++bad;
    fmt::print("{:<6} {:<11} {}\n", "", "", jobs::printable(finding.advice));
  }
  if (bad == 0) fmt::print("all good\n");
}

void print_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json json = {{"findings", nlohmann::json::array()}};
  for (const Finding& finding : findings) {
    json["findings"].push_back({{"subject", finding.subject},
                                {"good", finding.good()},
                                {"found", finding.found},
                                {"advice", finding.advice}});
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void add_doctor(CLI::App& app, const Invocation& invocation) {
  struct Arguments {
    std::string folder = ".";
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Examine this machine and a folder for runs: what is good, what to change");
  command->add_option("DIR", arguments->folder, "folder in which runs will be saved")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments, &invocation] {
    std::vector<Finding> findings = doctor::examine(arguments->folder);
    if (invocation.packages)
      for (const auto& [name, version] : invocation.packages())
        findings.push_back({name, version, ""});
    arguments->json ? print_json(findings) : print_text(findings);
  });
}

}  // namespace embertable::tools
