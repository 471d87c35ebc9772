#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/converted.h"
#include "apps/cli/progress_line.h"
#include "apps/convert/import_tables.h"
#include "apps/convert/printable.h"

namespace embertable::tools {
namespace {

struct ImportArguments {
  jobs::ImportOptions options;
  std::string format;
  std::string combiner = "mean";
  bool json = false;
};

void run(ImportArguments& arguments) {
  arguments.options.format = format_of(arguments.format);
  arguments.options.combiner = parse_combiner(arguments.combiner);
  jobs::ImportReport report;
  {
    const ProgressLine progress("import", !arguments.json);
    report = jobs::import_tables(arguments.options, [&](const jobs::ConvertedArray& array) {
      print_converted(array, arguments.json);
    });
  }
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"step", report.step.string()},
                                         {"left_out", report.left_out}};
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  for (const std::string& source : report.left_out)
    fmt::print("left out  {}\n", jobs::printable(source));
  fmt::print("saved {}\n", report.step.string());
}

}  // namespace

void add_import(CLI::App& app) {
  auto arguments = std::make_shared<ImportArguments>();
  jobs::ImportOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand(
      "import", "Make a checkpoint from tables that TensorFlow, NumPy or word2vec wrote");
  command
      ->add_option(
          "PATH", options.from,
          "tf: a checkpoint's prefix, or a directory, whose latest checkpoint is read; npy: a file "
          "or a directory of them; word2vec: a file")
      ->required();
  add_format(*command, arguments->format);
  command
      ->add_option(
          "--out", options.out,
          "directory to which the step is added, new or of other steps that train did not save")
      ->required()
      ->check(not_empty());
  command
      ->add_option(
          "--table", options.tables,
          "NAME, or NAME=KEY (npy: NAME=FILE); may be repeated; default: all that are found")
      ->allow_extra_args(false)
      ->take_all();
  command
      ->add_option("--slot", options.slots,
                   "TABLE/SLOT=KEY, for a slot that is not found by its name; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
  command->add_option("--combiner", arguments->combiner, "combiner of the tables")
      ->check(CLI::IsMember({"sum", "mean", "sqrtn"}))
      ->capture_default_str();
  command->add_option("--step", options.step, "number of the step that is saved")
      ->check(at_least(0))
      ->capture_default_str();
  const CLI::Option* binary =
      command->add_flag("--binary", options.binary, "word2vec: read the binary form");
  command->add_flag("--json", arguments->json,
                    "print one JSON object per line: tables and slots, then the step");
  command->callback([arguments, binary] {
    if (binary->count() > 0 && arguments->format != "word2vec")
      throw CLI::ValidationError(binary->get_name(), "is of --format word2vec");
    run(*arguments);
  });
}

}  // namespace embertable::tools
