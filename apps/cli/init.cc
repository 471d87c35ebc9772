#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "apps/cli/checks.h"
#include "apps/cli/column_roles.h"
#include "apps/cli/commands.h"
#include "apps/cli/numbers.h"
#include "apps/cli/train_report.h"
#include "apps/convert/printable.h"
#include "apps/convert/result_file.h"
#include "apps/jobs/data/seen_file.h"
#include "apps/jobs/spec/defaults.h"
#include "base/did_you_mean.h"
#include "embertable/errors.h"

namespace embertable::tools {
namespace {

using jobs::SeenColumn;
using jobs::SeenFile;

struct InitArguments {
  std::string file;
  std::string model;
  std::string user, item, label, time, positive;
  std::string out;
  bool no_header = false;
  bool force = false;
};

/// An option that only some models have a use for.
struct RoleOption {
  const char* name;
  std::string InitArguments::*given;
  std::vector<std::string> models;
};

const std::vector<RoleOption>& role_options() {
  static const std::vector<RoleOption> all = {
      {"--label", &InitArguments::label, {"mf", "ctr"}},
      {"--positive", &InitArguments::positive, {"ctr"}},
      {"--user", &InitArguments::user, {"mf", "pairwise", "next_item"}},
      {"--item", &InitArguments::item, {"mf", "pairwise", "next_item"}},
      {"--time", &InitArguments::time, {"mf", "ctr", "next_item"}}};
  return all;
}

/// Refuses an option that `model` has no use for.
void check_options(const InitArguments& arguments, const std::string& model) {
  for (const RoleOption& option : role_options()) {
    if ((arguments.*option.given).empty() || std::ranges::count(option.models, model) > 0) continue;
    throw CLI::ValidationError(
        option.name,
        fmt::format("is only for --model {}{}", fmt::join(option.models, ", "),
                    arguments.model.empty() ? "; these columns suggest " + model : ""));
  }
}

/// Returns a text as TOML has it. Throws ValueError unless it is UTF-8.
std::string toml(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw ValueError(
        fmt::format("'{}' must be UTF-8 to stand in a job; --no-header takes columns "
                    "by their numbers",
                    text));
  }
}

std::string key_of(const std::string& name) {
  const bool is_bare = !name.empty() && name.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789_-") == std::string::npos;
  return is_bare ? name : toml(name);
}

/// Asks on a terminal; elsewhere the option is named by an error.
std::string ask(const std::string& question, const std::string& option,
                const std::vector<std::string>& choices) {
  const std::string listed = jobs::printable(fmt::format("{}", fmt::join(choices, ", ")));
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
    throw ValueError(fmt::format("{} Give {}, one of: {}", question, option, listed));
  for (;;) {
    fmt::print("{} One of: {}\n> ", question, listed);
    std::fflush(stdout);
    std::string answer;
    if (!std::getline(std::cin, answer)) throw ValueError(question + " No answer was given");
    if (std::find(choices.begin(), choices.end(), answer) != choices.end()) return answer;
  }
}

/// Writes a job from a look at its data, from options and from answers.
class Draft {
 public:
  Draft(const InitArguments& arguments, const SeenFile& seen) : arguments_(arguments), seen_(seen) {
    for (const SeenColumn& column : seen.columns) names_.push_back(column.name);
  }

  /// Returns the job.
  std::string text() {
    seen_.lists ? choose_for_lists() : choose();
    lines_ = fmt::format(
        "# Drafted from {}: {}.\n\n[data]\nfile = {}\n",
        jobs::printable(std::filesystem::path(arguments_.file).filename().string()),
        seen_.lists
            ? fmt::format("{} lists", grouped(seen_.records))
            : fmt::format("{} records in {} columns", grouped(seen_.records), names_.size()),
        toml(std::filesystem::path(arguments_.file).filename().string()));
    if (model_ == "skipgram") return lines_ + "\n[model]\nkind = \"skipgram\"\n";
    if (seen_.lists) {
      lines_ += "format = \"lists\" # a line: a user, then the user's items\n";
      lines_ += fmt::format(
          "\n[model]\nkind = \"{}\"{}\n", model_,
          arguments_.model.empty() ? " # next_item, if items stand in the order of time" : "");
      return lines_;
    }
    if (seen_.format.separator != ',')
      lines_ += fmt::format("field_separator = {}\n", toml(std::string(1, seen_.format.separator)));
    if (!seen_.format.header) lines_ += "header = false\n";
    if (seen_.format.trim) lines_ += "trim = true # blanks stand around fields\n";
    if (model_ == "mf" || model_ == "ctr") write_label();
    if (model_ == "ctr") write_numbers();
    if (model_ == "next_item") write("time", toml_column(time_), described(column(time_)));
    write_where();
    if (model_ == "ctr") {
      write_fields();
    } else {
      write_ids("user", user_);
      write_ids("item", item_);
    }
    lines_ += fmt::format("\n[model]\nkind = \"{}\"\n", model_);
    write_split();
    if (model_ == "mf") write_schedule();
    return lines_;
  }

  /// Returns the share of the records that has no usable label, or is broken.
  double share_of_bad() const {
    if (seen_.columns.size() == 1) return 0;  // text and lists are not read as records
    std::int64_t bad = seen_.broken;
    if (model_ == "mf") bad += column(label_).texts + column(label_).times;
    return static_cast<double>(bad) / static_cast<double>(seen_.records + seen_.broken);
  }

  const std::vector<std::string>& left_out() const noexcept { return left_out_; }

 private:
  std::size_t index_of(const std::string& name) const {
    return static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
  }

  const SeenColumn& column(const std::string& name) const { return seen_.columns[index_of(name)]; }

  std::string toml_column(const std::string& name) const {
    return seen_.format.header && column(name).called.empty() ? toml(name) : name;
  }

  void write(std::string_view key, const std::string& value, const std::string& why) {
    lines_ += fmt::format("{} = {} # {}\n", key, value, jobs::printable(why));
  }

  /// Returns the name of the column that an option gives by its name or its number.
  std::string chosen(const char* option, const std::string& given) const {
    if (std::find(names_.begin(), names_.end(), given) != names_.end()) return given;
    std::size_t number = 0;
    const char* const last = given.data() + given.size();
    const auto parsed = std::from_chars(given.data(), last, number);
    if (parsed.ec == std::errc() && parsed.ptr == last && number >= 1 && number <= names_.size())
      return names_[number - 1];
    const std::vector<std::string_view> known(names_.begin(), names_.end());
    throw ValueError(fmt::format("{} must be a column of '{}', got '{}'{}", option, arguments_.file,
                                 given, did_you_mean(given, known)));
  }

  /// Returns the column that an option names, else the only one that is fit.
  template <class Fits>
  std::string role(const char* option, const std::string& given, const Fits& fits) const {
    if (!given.empty()) return chosen(option, given);
    std::string found;
    for (const SeenColumn& one : seen_.columns) {
      if (!fits(one)) continue;
      if (!found.empty()) return "";
      found = one.name;
    }
    return found;
  }

  std::string required(const std::string& found, const char* option, const char* question) const {
    return found.empty() ? ask(question, option, names_) : found;
  }

  /// Chooses what is made of lists of a user's items, which have no columns.
  void choose_for_lists() {
    model_ = arguments_.model.empty() ? "pairwise" : arguments_.model;
    if (model_ == "mf" || model_ == "ctr")
      throw ValueError(
          fmt::format("--model must be pairwise or next_item for '{}', whose lines are a user and "
                      "the user's items, got {}",
                      arguments_.file, model_));
    check_options(arguments_, model_);
    for (const RoleOption& option : role_options()) {
      if ((arguments_.*option.given).empty()) continue;
      throw ValueError(
          fmt::format("{} must be left out for '{}', whose lines are a user and the user's items",
                      option.name, arguments_.file));
    }
  }

  void choose() {
    user_ = role("--user", arguments_.user, is_called_a_user);
    item_ = role("--item", arguments_.item, is_called_an_item);
    time_ = role("--time", arguments_.time, [](const SeenColumn& one) {
      return one.are_times() || (one.are_integers() && is_called_a_time(one));
    });
    label_ = role("--label", arguments_.label, is_called_a_label);
    if (label_.empty() && (user_.empty() || item_.empty())) label_ = label_at_an_end();
    if (user_.empty() && !item_.empty()) user_ = only_other_key();
    if (item_.empty() && !user_.empty()) item_ = only_other_key();
    model_ = arguments_.model.empty() ? guessed_model() : arguments_.model;
    if (model_.empty())
      model_ = ask("What shall be trained cannot be told from the columns.", "--model",
                   {"mf", "ctr", "pairwise", "next_item"});
    check_options(arguments_, model_);
    if (model_ == "skipgram") return;
    if (model_ == "mf" || model_ == "ctr")
      label_ = required(label_, "--label", "Which column is to be predicted?");
    if (model_ == "ctr") return;
    user_ = required(user_, "--user", "Which column has the users?");
    item_ = required(item_, "--item", "Which column has the items?");
    if (model_ == "next_item") time_ = required(time_, "--time", "Which column has the times?");
    require_different("--user", user_, "--item", item_);
    if (model_ != "mf") return;
    require_different("--label", label_, "--user", user_);
    require_different("--label", label_, "--item", item_);
  }

  void require_different(const char* option, const std::string& column, const char* other,
                         const std::string& of_other) const {
    if (column == of_other)
      throw ValueError(fmt::format("{} and {} must be different columns of '{}', got '{}' for both",
                                   option, other, arguments_.file, column));
  }

  /// Returns the last column, or else the first, if it has two values, as labels usually do; ""
  /// with an option that says that there is no such label.
  std::string label_at_an_end() const {
    if (!arguments_.model.empty() && arguments_.model != "ctr") return "";
    for (const SeenColumn* one : {&seen_.columns.back(), &seen_.columns.front()})
      if (names_.size() > 1 && one->has_all() && one->distinct.size() == 2) return one->name;
    return "";
  }

  /// Returns the only column that may hold the keys of users or items besides those that are known,
  /// or "".
  std::string only_other_key() const {
    std::string found;
    for (const SeenColumn& one : seen_.columns) {
      const bool is_known =
          one.name == user_ || one.name == item_ || one.name == time_ || one.name == label_;
      const bool is_amount = one.are_numbers() && !one.are_integers() && !one.whole;
      if (is_known || one.are_times() || is_amount || one.distinct.size() < 3) continue;
      if (!found.empty()) return "";
      found = one.name;
    }
    return found;
  }

  std::string guessed_model() const {
    if (names_.size() == 1) return "skipgram";
    const bool has_label = !label_.empty();
    if (has_label && column(label_).has_all() && column(label_).distinct.size() == 2) return "ctr";
    if (user_.empty() || item_.empty()) return "";
    if (has_label && are_mostly_numbers(column(label_))) return "mf";
    return time_.empty() ? "pairwise" : "next_item";
  }

  void write_label() {
    const SeenColumn& labels = column(label_);
    write("label", toml_column(label_), described(labels));
    if (model_ == "mf") {
      if (labels.integers + labels.decimals == 0)
        throw ValueError(fmt::format("--label must be a column of numbers, got '{}': {}", label_,
                                     described(labels)));
      if (labels.lowest == labels.highest)
        throw ValueError(
            fmt::format("the labels of '{}' must differ, got {} in all records that were seen; "
                        "--label names another column",
                        label_, number_text(labels.lowest)));
      lines_ += fmt::format("range = [{}, {}]\n", number_text(labels.lowest),
                            number_text(labels.highest));
      return;
    }
    const std::vector<std::string> values = sorted(labels);
    std::string positive = arguments_.positive;
    const bool are_labels = values == std::vector<std::string>{"0", "1"};
    if (are_labels && (positive.empty() || positive == "1")) return;
    if (positive.empty() && values.size() == 2) positive = positive_of(values);
    if (positive.empty() && values.size() > 20)
      throw ValueError(
          fmt::format("--label must have two values, or --positive must name one, got "
                      "'{}': {}",
                      label_, described(labels)));
    std::string why;
    if (positive.empty() && values.size() == 2 && isatty(STDIN_FILENO) == 0) {
      positive = values.back();  // which of the two is 1 only turns predictions round
      why = fmt::format(" # label 1; {} is 0, --positive chooses", toml(values.front()));
    }
    if (positive.empty()) positive = ask("Which label counts as 1?", "--positive", values);
    if (labels.has_all() && labels.distinct.count(positive) == 0)
      throw ValueError(
          fmt::format("--positive must be a text of column '{}', got '{}'", label_, positive));
    lines_ += fmt::format("positive = [{}]{}\n", toml(positive), jobs::printable(why));
  }

  static std::vector<std::string> sorted(const SeenColumn& column) {
    std::vector<std::string> values(column.distinct.begin(), column.distinct.end());
    std::sort(values.begin(), values.end());
    return values;
  }

  /// Returns the one of two values that means yes, or "".
  static std::string positive_of(const std::vector<std::string>& values) {
    std::string found;
    for (const std::string& value : values) {
      const bool is_yes =
          std::ranges::any_of(std::array{"1", "yes", "y", "true", "t"},
                              [&](const char* yes) { return equal_in_any_case(value, yes); });
      if (!is_yes) continue;
      if (!found.empty()) return "";
      found = value;
    }
    return found;
  }

  /// Leaves out records without a label, a user, an item or a time, where the model needs it.
  void write_where() {
    std::vector<std::string> needed;
    if (model_ == "mf" || model_ == "ctr") needed.push_back(label_);
    if (model_ != "ctr") needed.insert(needed.end(), {user_, item_});
    if (model_ == "next_item") needed.push_back(time_);
    std::string rules;
    for (const std::string& name : needed) {
      if (name.empty() || column(name).empty == 0) continue;
      rules += fmt::format("{} = \"filled\" # {} are empty\n", key_of(name),
                           grouped(column(name).empty));
    }
    if (!rules.empty()) lines_ += "\n[data.where]\n" + rules;
  }

  void write_ids(const char* ids, const std::string& name) {
    lines_ += fmt::format("\n[ids.{}]\n", ids);
    write("column", toml_column(name), described(column(name)));
    if (!column(name).are_integers()) lines_ += "keys = \"string\"\n";
  }

  /// Writes the columns of fractions, of which nearly each record has its own, as numbers; unless
  /// there is no other column.
  void write_numbers() {
    bool any_other = false;
    std::vector<std::string> columns;
    for (const SeenColumn& one : seen_.columns) {
      if (one.name == label_ || (says_nothing(one) && !lists_in(one))) continue;
      if (one.are_numbers() && one.decimals > 0 && one.distinct.size() > 20) {
        columns.push_back(toml_column(one.name));
        numbers_.push_back(one.name);
      } else {
        any_other = true;
      }
    }
    if (!any_other) numbers_.clear();
    if (numbers_.empty()) return;
    lines_ += fmt::format("numbers = [{}] # standardised\n", fmt::join(columns, ", "));
  }

  /// Writes how records are dealt to parts, and how their times could.
  void write_split() {
    if (model_ != "mf" && model_ != "ctr") return;
    if (model_ == "mf")
      lines_ +=
          "\n[split]\nby = [\"user\", \"item\"] # a pair that is there twice is in one part\n";
    if (time_.empty() || time_ == label_) return;
    lines_ += fmt::format("{}# time = {} # {}tests on the latest records\n",
                          model_ == "mf" ? "" : "\n# [split]\n", toml_column(time_),
                          model_ == "mf" ? "instead of by: " : "");
  }

  /// Writes a smaller batch where a key has so many of the ratings that the default diverges.
  void write_schedule() {
    const std::vector<double> shares = jobs::greatest_shares(
        arguments_.file, seen_, std::array{index_of(user_), index_of(item_), index_of(label_)});
    const bool is_user = shares[0] > shares[1];
    const double share = std::max(shares[0], shares[1]);
    const std::optional<std::int64_t> batch = jobs::stable_batch_of_ratings(share);
    if (!batch || *batch >= seen_.records) return;
    lines_ += fmt::format(
        "\n[schedule]\nbatch = {} # a row adds up its gradients of a batch: one {} has {:.{}f} % "
        "of the ratings\n",
        *batch, is_user ? "user" : "item", 100 * share, share < 0.1 ? 1 : 0);
  }

  void write_fields() {
    std::vector<std::string> columns, buckets;
    std::vector<const SeenColumn*> lists;
    for (const SeenColumn& one : seen_.columns) {
      if (one.name == label_) continue;
      if (std::ranges::count(numbers_, one.name) > 0) continue;
      const auto different = static_cast<std::int64_t>(one.distinct.size());
      if (lists_in(one)) {
        lists.push_back(&one);
        continue;
      }
      if (says_nothing(one)) {
        left_out_.push_back(fmt::format("{}: {}", one.name, described(one)));
        continue;
      }
      if (one.name.find('=') != std::string::npos) {
        left_out_.push_back(one.name + ": keys of columns have no '=' in the column's name");
        continue;
      }
      columns.push_back(toml_column(one.name));
      const bool is_amount =
          one.are_numbers() && one.lowest >= 0 && different > 20 && !is_called_a_key(one);
      if (is_amount) buckets.push_back(toml_column(one.name));
    }
    if (columns.empty() && lists.empty())
      throw ValueError(
          fmt::format("'{}' must have columns that may say something of '{}', got "
                      "none",
                      arguments_.file, label_));
    if (!columns.empty()) {
      lines_ += fmt::format("\n[ids.field]\ncolumns = [{}]\n", fmt::join(columns, ", "));
      if (!buckets.empty())
        lines_ += fmt::format("buckets = [{}] # amounts\n", fmt::join(buckets, ", "));
      lines_ += "min_count = 2 # rarer values share a row\n";
    }
    for (const std::string& one : left_out_)
      lines_ += fmt::format("# left out: {}\n", jobs::printable(one));
    for (std::size_t i = 0; i < lists.size(); ++i) write_list(*lists[i], i + 1);
  }

  /// Writes ids of their own for a column of lists.
  void write_list(const SeenColumn& one, std::size_t number) {
    const ListForm form = lists_in(one).value();
    const std::string key = key_of(one.name);
    const bool is_free = key == one.name && key != "field";
    std::string ids = is_free ? key : fmt::format("list{}", number);
    while (!is_free && std::ranges::count(seen_.columns, ids, &SeenColumn::name) > 0) ids += '_';
    lines_ += fmt::format("\n[ids.{}]\n", ids);
    write("column", toml_column(one.name), described(one));
    lines_ += fmt::format("separator = {}\n", toml(form.separator));
    if (!form.integers) lines_ += "keys = \"string\"\n";
    lines_ += "min_count = 2\n";
  }

  const InitArguments& arguments_;
  const SeenFile& seen_;
  std::vector<std::string> names_;
  std::string model_, user_, item_, label_, time_;
  std::vector<std::string> numbers_;   ///< columns that the model takes as numbers
  std::vector<std::string> left_out_;  ///< columns that say nothing of the label, and why
  std::string lines_;
};

std::string called(char separator) {
  if (separator == '\t') return "tabs";
  if (separator == ' ') return "blanks";
  return fmt::format("'{}'", separator);
}

void print_seen(const std::string& file, const SeenFile& seen, std::FILE* to) {
  if (seen.lists) {
    fmt::print(to, "{}: {}{} lines of a user and the user's items, integers\n", file,
               seen.all ? "" : "the first ", grouped(seen.records));
    return;
  }
  const bool is_one = seen.columns.size() == 1;
  fmt::print(to, "{}: {}{} records, {}, {}\n", file, seen.all ? "" : "the first ",
             grouped(seen.records),
             is_one ? "one field each" : "fields between " + called(seen.format.separator),
             seen.format.header ? "names in the first line" : "no names in the first line");
  if (seen.broken > 0 && !is_one)
    fmt::print(to, "  {} broken records are left out\n", grouped(seen.broken));
  for (const SeenColumn& column : seen.columns)
    fmt::print(to, "  {:<22} {}\n", jobs::printable(column.name), described(column));
}

void run(const InitArguments& arguments) {
  if (!arguments.model.empty()) check_options(arguments, arguments.model);
  const bool to_file =
      arguments.out != "-" &&
      (arguments.out.empty() || !jobs::ResultFile::is_standard_output(arguments.out));
  SeenFile seen = jobs::look_at(arguments.file, !arguments.no_header);
  print_seen(arguments.file, seen, to_file ? stdout : stderr);
  Draft draft(arguments, seen);
  const std::string text = draft.text();
  if (!to_file) return jobs::write_result("", text);
  const std::filesystem::path file = arguments.file;
  std::filesystem::path out = arguments.out;
  if (out.empty()) {
    out = file;
    while (out.has_extension()) out.replace_extension();
    out += ".toml";
  }
  if (!arguments.force) refuse_existing(out);
  std::error_code none;
  if (std::filesystem::equivalent(out, file, none))
    throw ValueError(fmt::format("--out must not be the data, got '{}'", out.string()));
  jobs::write_result(out.string(), text);
  const auto folder = [](const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  };
  const bool beside = std::filesystem::equivalent(folder(out), folder(file), none);
  const double bad = draft.share_of_bad();
  fmt::print("wrote {}\nnext:\n  embertable train {} --out RUN{}{}\n", out.string(),
             shell_word(out.string()), beside ? "" : " --data " + shell_word(folder(file).string()),
             bad > 0 ? fmt::format(" --skip-bad {}%", std::ceil(bad * 1000 + 1) / 10) : "");
}

}  // namespace

void add_init(CLI::App& app) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* command =
      app.add_subcommand("init", "Look at a file of records and write a job that trains on it");
  command->add_option("FILE", arguments->file, "records with fields between separators")
      ->required();
  command->add_option("--model", arguments->model, "mf, ctr, pairwise, next_item or skipgram")
      ->check(CLI::IsMember({"mf", "ctr", "pairwise", "next_item", "skipgram"}));
  command->add_option("--label", arguments->label, "column that is predicted, by name or number");
  command->add_option("--positive", arguments->positive, "ctr: the label that counts as 1");
  command->add_option("--user", arguments->user, "column of the users, by name or number");
  command->add_option("--item", arguments->item, "column of the items, by name or number");
  command->add_option("--time", arguments->time,
                      "column that orders a user's events, by name or number");
  command->add_flag("--no-header", arguments->no_header, "the first line does not name columns");
  command
      ->add_option("--out", arguments->out,
                   "the job file; -: standard output; default: beside FILE")
      ->check(not_empty());
  command->add_flag("--force", arguments->force, "replace the job file");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace embertable::tools
