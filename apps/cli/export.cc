#include <memory>
#include <string>

#include "apps/cli/commands.h"
#include "apps/cli/converted.h"
#include "apps/convert/export_tables.h"

namespace embertable::tools {
namespace {

struct ExportArguments {
  jobs::ExportOptions options;
  std::string format;
  std::string label = "key";
  bool without_slots = false;
  bool json = false;
};

void run(ExportArguments& arguments) {
  arguments.options.format = format_of(arguments.format);
  arguments.options.slots = !arguments.without_slots;
  arguments.options.label = arguments.label == "key"    ? jobs::RowLabel::kKey
                            : arguments.label == "name" ? jobs::RowLabel::kName
                                                        : jobs::RowLabel::kRow;
  jobs::export_tables(arguments.options, [&](const jobs::ConvertedArray& array) {
    print_converted(array, arguments.json);
  });
}

}  // namespace

void add_export(CLI::App& app) {
  auto arguments = std::make_shared<ExportArguments>();
  jobs::ExportOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand(
      "export", "Write tables of a checkpoint for TensorFlow, NumPy or readers of word2vec");
  command
      ->add_option("DIR", options.from,
                   "a run's directory, of which the latest step is taken, or a step's")
      ->required();
  add_format(*command, arguments->format);
  command
      ->add_option("--out", options.out,
                   "directory that gets the files; word2vec of one table: the file")
      ->required();
  command->add_option("--table", options.tables, "a table; may be repeated. Default: all")
      ->allow_extra_args(false)
      ->take_all();
  command->add_flag("--no-slots", arguments->without_slots, "without the optimizer's slots");
  command
      ->add_option("--object", options.object,
                   "tf: attributes from the checkpoint's root to the tables, '/' between them; "
                   "\"\": the root has them")
      ->capture_default_str();
  command->add_option("--shards", options.shards, "tf: slices of each table; 0: as it was saved")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--binary", options.binary, "word2vec: the binary form");
  command
      ->add_option("--label", arguments->label,
                   "word2vec: what stands before a row's numbers, its key, its name with '_' for "
                   "blanks, or its row number")
      ->check(CLI::IsMember({"key", "name", "row"}))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "one JSON object a line for each table and slot");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
