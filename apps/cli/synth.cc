#include "apps/jobs/data/synth.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "embertable/errors.h"

namespace embertable::tools {
namespace {

struct SynthArguments {
  std::string stem;
  std::vector<std::string> tables;
  jobs::SynthSpec spec;
  std::string format = "tsv";
  bool force = false;
  bool json = false;
};

[[noreturn]] void refuse(const std::string& text) {
  throw ValueError(fmt::format(
      "--table must be NAME:ROWS, NAME:ROWS:KEYS or NAME:ROWS:LEAST-MOST, got '{}'", text));
}

std::int64_t integer(std::string_view text, const std::string& whole) {
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) refuse(whole);
  return value;
}

jobs::SynthTable table(const std::string& text) {
  std::vector<std::string_view> parts;
  std::string_view rest = text;
  for (std::size_t cut; (cut = rest.find(':')) != std::string_view::npos;
       rest.remove_prefix(cut + 1))
    parts.push_back(rest.substr(0, cut));
  parts.push_back(rest);
  if (parts.size() < 2 || parts.size() > 3) refuse(text);
  jobs::SynthTable table{.name = std::string(parts[0]), .rows = integer(parts[1], text)};
  if (parts.size() == 2) return table;
  const std::size_t dash = parts[2].find('-');
  table.least = integer(parts[2].substr(0, dash), text);
  table.most =
      dash == std::string_view::npos ? table.least : integer(parts[2].substr(dash + 1), text);
  return table;
}

void print(const char* name, const jobs::SynthLoss& loss) {
  fmt::print("{:<12} {:>12} {:>10.4f} {:>12.6f}\n", name, loss.records,
             loss.records > 0
                 ? static_cast<double>(loss.positives) / static_cast<double>(loss.records)
                 : 0.0,
             loss.logloss);
}

void run(SynthArguments& arguments) {
  for (const std::string& text : arguments.tables) arguments.spec.tables.push_back(table(text));
  arguments.spec.commas = arguments.format == "csv";
  const jobs::SynthFiles files = jobs::synth_files(arguments.spec, arguments.stem);
  for (const std::filesystem::path& file : {files.data, files.job, files.truth})
    if (!arguments.force) refuse_existing(file);
  const jobs::SynthReport report = jobs::write_synth(arguments.spec, arguments.stem);
  const auto of = [&](jobs::Part part) { return report.parts[static_cast<std::size_t>(part)]; };
  if (arguments.json) {
    nlohmann::ordered_json json = {{"data", report.files.data.string()},
                                   {"job", report.files.job.string()},
                                   {"truth", report.files.truth.string()},
                                   {"records", report.all.records},
                                   {"best_logloss", report.all.logloss},
                                   {"best_test_logloss", of(jobs::Part::kTest).logloss}};
    fmt::print("{}\n", json.dump());
    return;
  }
  fmt::print("{:<12} {:>12} {:>10} {:>12}\n", "part", "records", "positives", "best logloss");
  print("training", of(jobs::Part::kTraining));
  print("validation", of(jobs::Part::kValidation));
  print("test", of(jobs::Part::kTest));
  print("all", report.all);
  const std::string folder = report.files.job.parent_path().string();
  fmt::print("{}\ntrain with\n  embertable train {} --data {}\n", report.files.data.string(),
             report.files.job.string(), folder.empty() ? "." : folder);
}

}  // namespace

void add_synth(CLI::App& app) {
  auto arguments = std::make_shared<SynthArguments>();
  jobs::SynthSpec& spec = arguments->spec;
  CLI::App* command = app.add_subcommand(
      "synth", "Write made-up data with a known best loss, and a job that trains on it");
  command->add_option("STEM", arguments->stem, "the files are STEM.tsv, STEM.toml and STEM.json")
      ->required();
  command
      ->add_option(
          "--table", arguments->tables,
          "NAME:ROWS, or NAME:ROWS:LEAST-MOST for lists of that many keys; may be repeated")
      ->required()
      ->allow_extra_args(false)
      ->take_all()
      ->check(accepted_by([](const std::string& text) { table(text); }));
  command->add_option("--records", spec.records, "number of records")
      ->required()
      ->check(at_least(0));
  command->add_option("--skew", spec.skew, "exponent of the Zipf distribution of keys; 0: uniform")
      ->capture_default_str();
  command->add_option("--positives", spec.positives, "approximate share of label 1")
      ->capture_default_str();
  command
      ->add_option("--spread", spec.spread, "standard deviation of what the keys add to the logit")
      ->capture_default_str();
  command->add_option("--seed", spec.seed, "the same seed gives the same files")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--format", arguments->format, "tsv or csv")
      ->check(CLI::IsMember({"tsv", "csv"}))
      ->capture_default_str();
  command->add_flag("--gzip", spec.compressed, "compress the data");
  command->add_flag("--force", arguments->force, "replace files that exist");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
