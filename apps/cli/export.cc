#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/best_epoch.h"
#include "apps/cli/checks.h"
#include "apps/cli/commands.h"
#include "apps/cli/converted.h"
#include "apps/cli/progress_line.h"
#include "apps/convert/export_tables.h"

namespace embertable::tools {
namespace {

struct ExportArguments {
  jobs::ExportOptions options;
  std::string format;
  std::string label = "key";
  bool json = false;
};

void run(ExportArguments& arguments) {
  arguments.options.format = format_of(arguments.format);
  arguments.options.from = best_epoch_of(arguments.options.from);
  arguments.options.label = arguments.label == "key"    ? jobs::RowLabel::kKey
                            : arguments.label == "name" ? jobs::RowLabel::kName
                                                        : jobs::RowLabel::kRow;
  const ProgressLine progress("export", !arguments.json);
  jobs::export_tables(arguments.options, [&](const jobs::ConvertedArray& array) {
    print_converted(array, arguments.json);
  });
}

}  // namespace

void add_export(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  jobs::ExportOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand("export",
                                         "Write tables of a checkpoint for TensorFlow, NumPy or "
                                         "word2vec readers, or to serve in int8");
  command->add_option("DIR", options.from, kBestEpochIsRead)->required();
  add_format(*command, arguments->format, true);
  command
      ->add_option("--out", options.out,
                   "directory for the files; word2vec with one table: the file")
      ->required()
      ->check(not_empty());
  command->add_option("--table", options.tables, "table to export; may be repeated; default: all")
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--slots", options.slots, "tf, npy: write the optimizer's slots too");
  CLI::Option* const object =
      command
          ->add_option("--object", options.object,
                       "tf: attributes from the checkpoint's root to the object with the tables, "
                       "separated by '/'; \"\": the root has the tables")
          ->capture_default_str();
  CLI::Option* const shards =
      command
          ->add_option("--shards", options.shards, "tf: slices of each table; 0: as it was saved")
          ->check(at_least(0))
          ->capture_default_str();
  CLI::Option* const binary =
      command->add_flag("--binary", options.binary, "word2vec: write the binary form");
  CLI::Option* const label =
      command
          ->add_option("--label", arguments->label,
                       "word2vec: word of a row: its key, its name with '_' for blanks, or its row "
                       "number; behind words that rows share comes '_' and what tells them apart")
          ->check(CLI::IsMember({"key", "name", "row"}))
          ->capture_default_str();
  command->add_flag("--json", arguments->json,
                    "print one JSON object per line for each table and slot");
  const std::vector<std::pair<std::string, CLI::Option*>> of_one = {
      {"tf", object}, {"tf", shards}, {"word2vec", binary}, {"word2vec", label}};
  command->callback([arguments, of_one] {
    for (const auto& [format, option] : of_one)
      if (option->count() > 0 && arguments->format != format)
        throw CLI::ValidationError(option->get_name(), fmt::format("is of --format {}", format));
    run(*arguments);
  });
}

}  // namespace embertable::tools
