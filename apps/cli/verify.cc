#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/exit_codes.h"
#include "apps/cli/numbers.h"
#include "apps/cli/progress_line.h"
#include "apps/convert/printable.h"
#include "apps/jobs/run/check_steps.h"

namespace embertable::tools {
namespace {

struct VerifyArguments {
  std::string path;
  bool all = false;
  bool json = false;
};

std::int64_t damaged_files(const std::vector<jobs::CheckedStep>& steps) {
  std::int64_t damaged = 0;
  for (const jobs::CheckedStep& step : steps) damaged += step.num_damaged();
  return damaged;
}

void print_json(const std::vector<jobs::CheckedStep>& steps) {
  nlohmann::ordered_json json = {{"damaged", damaged_files(steps)}};
  for (const jobs::CheckedStep& step : steps) {
    nlohmann::ordered_json one = {{"directory", step.directory.string()}};
    for (const jobs::CheckedFile& file : step.files) {
      nlohmann::ordered_json checked = {
          {"name", file.name}, {"bytes", file.bytes}, {"blocks", file.blocks}};
      if (!file.damage.empty()) checked["damage"] = file.damage;
      one["files"].push_back(std::move(checked));
    }
    json["steps"].push_back(std::move(one));
  }
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_text(const std::vector<jobs::CheckedStep>& steps) {
  std::int64_t files = 0, blocks = 0, bytes = 0;
  for (const jobs::CheckedStep& step : steps) {
    fmt::print("{}\n", step.directory.string());
    for (const jobs::CheckedFile& file : step.files) {
      ++files;
      blocks += file.blocks;
      bytes += file.bytes;
      fmt::print("  {:<7}  {:<46} {:>9} {:>16}\n", file.damage.empty() ? "ok" : "DAMAGED",
                 jobs::printable(file.name), size_text(file.bytes), counted(file.blocks, "block"));
      if (!file.damage.empty()) fmt::print("           {}\n", jobs::printable(file.damage));
    }
  }
  const std::int64_t damaged = damaged_files(steps);
  fmt::print("{}, {}, {}, {}: ", counted(static_cast<std::int64_t>(steps.size()), "step"),
             counted(files, "file"), counted(blocks, "block"), size_text(bytes));
  if (damaged == 0) {
    fmt::print("all checksums match\n");
  } else {
    fmt::print("{} damaged\n", counted(damaged, "file"));
  }
}

void run(const VerifyArguments& arguments, Invocation& invocation) {
  std::vector<jobs::CheckedStep> steps;
  {
    const ProgressLine progress("verify", !arguments.json);
    steps = jobs::check_steps(arguments.path, arguments.all);
  }
  arguments.json ? print_json(steps) : print_text(steps);
  if (damaged_files(steps) > 0) invocation.exit_code = kFailed;
}

}  // namespace

void add_verify(CLI::App& app, Invocation& invocation) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand(
      "verify", "Read a checkpoint whole and check every checksum; exit code 1 if one fails");
  command
      ->add_option(
          "DIR", arguments->path,
          "directory of a run, whose highest step is read, and that of its best epoch if it "
          "has schedule.patience; or of a step")
      ->required();
  command->add_flag("--all", arguments->all, "check every step of the run");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments, &invocation] { run(*arguments, invocation); });
}

}  // namespace embertable::tools
