#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

#include "apps/cli/commands.h"
#include "apps/cli/numbers.h"
#include "apps/convert/printable.h"
#include "apps/jobs/run/describe.h"
#include "embertable/checkpoint.h"
#include "embertable/errors.h"

namespace embertable::tools {
namespace {

using jobs::Json;
using jobs::printable;

struct InspectArguments {
  std::string path;
  bool job = false;
  bool json = false;
};

std::string text(const Json& json) {
  return json.is_string() ? printable(json.get_ref<const std::string&>()) : "";
}
std::int64_t integer(const Json& json) {
  return json.is_number_integer() ? json.get<std::int64_t>() : 0;
}

/// Prints a line such as "video  1.2 MiB  F32 [10000, 32]" for each tensor, the names aligned.
void print_tensors(const Json& tensors, int indent) {
  std::size_t width = 0;
  for (const Json& tensor : tensors) width = std::max(width, text(tensor["name"]).size());
  for (const Json& tensor : tensors) {
    fmt::print("{:{}}{:<{}}  {:>9}  {} [{}]\n", "", indent, text(tensor["name"]), width,
               size_text(integer(tensor["bytes"])), text(tensor["dtype"]),
               fmt::join(tensor["shape"].get<std::vector<std::int64_t>>(), ", "));
  }
}

/// Prints the progress of a job, if the caller's JSON, which may be anything, tells of one.
void print_job_done(const std::string& json) {
  const nlohmann::json user = nlohmann::json::parse(json, nullptr, false);
  using Pointer = nlohmann::json::json_pointer;
  for (const char* place : {"/job", "/model"})
    if (!user.contains(Pointer(place)) || !user.at(Pointer(place)).is_string()) return;
  for (const char* place : {"/progress/epochs", "/progress/samples"})
    if (!user.contains(Pointer(place)) || !user.at(Pointer(place)).is_number_integer()) return;
  const nlohmann::json& progress = user.at("progress");
  fmt::print("job {}, model {}: {} and {} done\n", printable(user.at("job").get<std::string>()),
             printable(user.at("model").get<std::string>()),
             counted(progress.at("epochs").get<std::int64_t>(), "epoch"),
             counted(progress.at("samples").get<std::int64_t>(), "sample"));
}

void print_head(const Json& all) {
  fmt::print("{}\n", text(all["directory"]));
  for (const Json& why : all["skipped"]) fmt::print("  skipped: {}\n", text(why));
  fmt::print("step {} by embertable {}, numerics {}, seed {}: {} in {}\n",
             grouped(integer(all["step"])), text(all["library"]), integer(all["numerics_version"]),
             all["seed"].get<std::uint64_t>(), size_text(integer(all["bytes"])),
             counted(static_cast<std::int64_t>(all["files"].size()), "file"));
  fmt::print("{} of {}, sharding {}{}\n", counted(integer(all["hosts"]), "host"),
             counted(integer(all["replicas_per_host"]), "replica"), text(all["sharding"]),
             all["pipeline_execution"].get<bool>() ? ", pipelined" : "");
}

void print_tables(const Json& tables) {
  fmt::print("tables\n");
  for (const Json& table : tables) {
    fmt::print("  {}: {} x {} {}, {}, {}, {}\n", text(table["name"]),
               counted(integer(table["rows"]), "row"), integer(table["dim"]),
               text(table["row_type"]), text(table["combiner"]), text(table["initializer"]),
               table["optimizer"].is_string() ? text(table["optimizer"]) : "no optimizer");
    print_tensors(table["variables"], 4);
  }
}

void print_text(const jobs::Description& description) {
  const Json& all = description.own;
  print_head(all);
  print_job_done(description.user);
  print_tables(all["tables"]);
  fmt::print("features\n");
  for (const Json& feature : all["features"])
    fmt::print("  {} -> {}\n", text(feature["path"]), text(feature["table"]));
  for (const auto& [key, title] :
       {std::pair("id_maps", "id maps"), {"tensors", "tensors"}, {"blobs", "blobs"}}) {
    if (all[key].empty()) continue;
    fmt::print("{}\n", title);
    print_tensors(all[key], 2);
  }
  fmt::print("files\n");
  for (const Json& file : all["files"]) {
    fmt::print("  {:<46} {:>9}  {}\n", text(file["name"]), size_text(integer(file["bytes"])),
               counted(integer(file["blocks"]), "block"));
  }
}

void print_job(const std::string& path) {
  const SavedState state = read_saved_state(path);
  const auto job = state.caller.blobs.find("job.toml");
  if (job == state.caller.blobs.end())
    throw KeyError(fmt::format("'{}' has no blob 'job.toml'", path));
  const std::string& text = job->second;
  // A file gets the bytes as they are.
  fmt::print("{}", isatty(STDOUT_FILENO) == 1 ? printable(text, jobs::Blanks::kKeep) : text);
}

void run(const InspectArguments& arguments) {
  if (arguments.job) {
    print_job(arguments.path);
    return;
  }
  const jobs::Description all = jobs::describe_checkpoint(arguments.path);
  if (arguments.json) {
    fmt::print("{}\n", all.text());
  } else {
    print_text(all);
  }
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand(
      "inspect", "Print what a checkpoint holds: tables, slots, shapes, bytes, configuration");
  command
      ->add_option("DIR", arguments->path,
                   "directory of a run, whose latest step is read, or of a step")
      ->required();
  CLI::Option* job = command->add_flag("--job", arguments->job,
                                       "print the job file that the run was started with");
  command->add_flag("--json", arguments->json, "print one JSON object")->excludes(job);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
