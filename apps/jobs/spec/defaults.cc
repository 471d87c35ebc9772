#include "apps/jobs/spec/defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/did_you_mean.h"
#include "embertable/optimizer.h"

namespace embertable::jobs {
namespace {

/// What trains a kind of model unless its job says otherwise.
struct Recipe {
  std::string_view kind;
  std::int64_t dim;
  double stddev;
  std::string_view rule;
  double learning_rate;
  std::int64_t batch;
  std::int64_t epochs;
  double regularization;
};

// The numbers come from the data sets of examples/jobs.
constexpr Recipe kRecipes[] = {
    {"mf", 32, 0.05, "sgd", 0.03, 2048, 30, 0.1},
    {"ctr", 8, 0.01, "adagrad", 0.03, 256, 1, 0.03},
    {"pairwise", 64, 0.1, "sgd", 0.05, 4096, 240, 0.01},
    {"next_item", 64, 0.05, "adagrad", 0.1, 512, 16, 0},
    {"skipgram", 100, 0, "sgd", 0.025, 128, 5, 0},
};

constexpr double kRatingsDecay = 0.95;
constexpr double kClicksAccumulator = 0.01;

/// Learning rates of rules that are not the recipe's.
constexpr std::pair<std::string_view, double> kRates[] = {
    {"sgd", 0.03}, {"adagrad", 0.05}, {"rowwise_adagrad", 0.05}, {"adam", 0.001}};

/// Completes one job. The sections that it is made with are tables or absent.
class Filling {
 public:
  Filling(toml::table& job, const Recipe& recipe) : job_(job), recipe_(recipe) {
    dim_ = recipe.dim;
  }

  /// Returns what a whole job leaves out that jobs of its kind have otherwise, or "".
  std::string note() const {
    if (lacks_something()) return "";
    std::vector<std::string> own, usual;
    const auto compare = [&](std::string_view section, std::string_view key, const char* in_whole,
                             const std::string& by_kind) {
      if (has(section, key)) return;
      own.push_back(fmt::format("{}.{} is {}", section, key, in_whole));
      usual.push_back(by_kind);
    };
    if (recipe_.regularization > 0)
      compare("model", "regularization", "0", fmt::format("{}", recipe_.regularization));
    const bool same_rule = equal_in_any_case(text("optimizer", "rule", ""), recipe_.rule);
    if (same_rule && recipe_.kind == "mf")
      compare("optimizer", "decay", "1", fmt::format("{}", kRatingsDecay));
    if (same_rule && recipe_.kind == "ctr")
      compare("optimizer", "initial_accumulator_value", "0.1",
              fmt::format("{}", kClicksAccumulator));
    if (recipe_.kind == "skipgram") compare("schedule", "rate", "\"constant\"", "\"linear\"");
    if (own.empty()) return "";
    return fmt::format(
        "{}, since the job names all of its roles, tables, rule, rate, batch and epochs; other "
        "jobs of {} have {}",
        fmt::join(own, ", "), recipe_.kind, fmt::join(usual, ", "));
  }

  bool run() {
    spell_rule();
    fill_ids();
    if (!lacks_something()) return changed_;
    toml::table& model = *section("model");
    if (const auto given = model["dim"].value_exact<std::int64_t>()) {
      dim_ = *given;
      model.erase("dim");
      changed_ = true;
    }
    name_roles();
    fill_optimizer();
    fill_schedule();
    fill_model();
    for (auto& [name, table] : *section("tables")) {
      if (table.is_table()) fill_table(std::string(name.str()), *table.as_table());
    }
    return changed_;
  }

 private:
  /// Returns a section, new if it is absent; null if its name has another value.
  toml::table* section(std::string_view name) {
    if (!job_.contains(name)) {
      job_.insert(name, toml::table{});
      changed_ = true;
    }
    return job_[name].as_table();
  }

  /// Gives a key a value unless it has one.
  template <class T>
  void put(toml::table& table, std::string_view key, T&& value) {
    changed_ |= table.insert(key, std::forward<T>(value)).second;
  }

  bool has(std::string_view section, std::string_view key) const {
    const toml::table* table = job_[section].as_table();
    return table != nullptr && table->contains(key);
  }

  bool has_any(std::string_view section, std::initializer_list<std::string_view> keys) const {
    return std::any_of(keys.begin(), keys.end(), [&](auto key) { return has(section, key); });
  }

  std::string text(std::string_view section, std::string_view key, std::string fallback) const {
    return job_[section][key].value_or(std::move(fallback));
  }

  bool is_records() const { return recipe_.kind == "mf" || recipe_.kind == "ctr"; }
  bool is_lists() const { return text("data", "format", "") == "lists"; }

  bool has_roles() const {
    return has_any("model", {"user", "item", "user_bias", "item_bias", "sides", "linear", "deep",
                             "history", "attributes", "history_attributes", "word", "context"});
  }

  /// True if the job leaves out what has no default of its own.
  bool lacks_something() const {
    if (has("model", "dim") || !has_roles()) return true;
    if (!has("optimizer", "rule") || !has("optimizer", "learning_rate")) return true;
    if (!has("schedule", "batch") || !has("schedule", "epochs")) return true;
    const toml::table* tables = job_["tables"].as_table();
    if (tables == nullptr) return true;
    return std::any_of(tables->begin(), tables->end(), [](const auto& one) {
      const toml::table* table = one.second.as_table();
      return table != nullptr && (!table->contains("dim") || !table->contains("initializer"));
    });
  }

  /// Returns the names of [ids] in the order of the file: of columns of the data, or of side
  /// tables.
  std::vector<std::string> ids(bool of_others) const {
    std::vector<std::pair<toml::source_position, std::string>> found;
    if (const toml::table* all = job_["ids"].as_table()) {
      for (const auto& [name, one] : *all) {
        const toml::table* table = one.as_table();
        if (table != nullptr && table->contains("of") == of_others)
          found.emplace_back(one.source().begin, std::string(name.str()));
      }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (auto& [place, name] : found) names.push_back(std::move(name));
    return names;
  }

  /// Chooses the ids of users and items: those of these names, else the first and the next.
  void choose_users_and_items() {
    const std::vector<std::string> names = ids(false);
    const auto choose = [&](const std::string& wanted, const std::string& taken) {
      const auto is = [&](const std::string& name) { return name == wanted; };
      if (std::any_of(names.begin(), names.end(), is)) return wanted;
      const auto free = std::find_if(names.begin(), names.end(), [&](const std::string& name) {
        return name != taken && name != "user" && name != "item";
      });
      return free == names.end() ? wanted : *free;
    };
    users_ = is_records() ? choose("user", "") : text("data", "user", choose("user", ""));
    items_ = is_records() ? choose("item", users_) : text("data", "item", choose("item", users_));
  }

  void fill_ids() {
    if (recipe_.kind == "skipgram") {
      if (!job_.contains("ids"))
        section("ids")->insert("word", toml::table{{"min_count", std::int64_t{5}}});
      return;
    }
    if (!is_records() && is_lists() && !job_.contains("ids")) {
      section("ids")->insert("user", toml::table{});
      section("ids")->insert("item", toml::table{});
    }
    if (recipe_.kind == "ctr") return;
    choose_users_and_items();
    if (is_records() || !job_["data"].is_table()) return;
    if (users_ != "user") put(*section("data"), "user", users_);
    if (items_ != "item") put(*section("data"), "item", items_);
  }

  /// Adds a table that the job lacks.
  void add_table(const std::string& name, const std::string& ids) {
    toml::table& tables = *section("tables");
    if (!tables.contains(name)) put(tables, name, toml::table{});
    if (toml::table* table = tables[name].as_table(); table != nullptr && name != ids)
      put(*table, "ids", ids);
  }

  void add_role(std::string_view key, const std::string& fallback, const std::string& ids) {
    toml::table& model = *section("model");
    put(model, key, fallback);
    if (!job_.contains("features")) add_table(model[key].value_or(fallback), ids);
  }

  void name_roles() {
    const bool named = has_roles();
    if (recipe_.kind == "mf") {
      if (named) return add_user_and_item();
      add_user_and_item();
      add_role("user_bias", users_ + "_bias", users_);
      add_role("item_bias", items_ + "_bias", items_);
      add_sides();
    } else if (recipe_.kind == "ctr") {
      if (!named) add_clicks();
    } else if (recipe_.kind == "pairwise") {
      add_user_and_item();
    } else if (recipe_.kind == "next_item") {
      add_next(named);
    } else {
      const std::vector<std::string> names = ids(false);
      const std::string words = names.empty() ? "word" : names.front();
      add_role("word", "word", words);
      add_role("context", "context", words);
    }
  }

  void add_user_and_item() {
    add_role("user", users_, users_);
    add_role("item", items_, items_);
  }

  void add_sides() {
    toml::array sides;
    for (const std::string& name : ids(true)) {
      add_table(name, name);
      sides.push_back(name);
    }
    if (!sides.empty()) put(*section("model"), "sides", std::move(sides));
  }

  void add_clicks() {
    std::vector<std::string> names = ids(false);
    const std::vector<std::string> joined = ids(true);
    names.insert(names.end(), joined.begin(), joined.end());
    toml::array linear, deep;
    for (const std::string& name : names) {
      const std::string before = names.size() == 1 ? "" : name + "_";
      add_table(before + "vector", name);
      add_table(before + "weight", name);
      deep.push_back(before + "vector");
      linear.push_back(before + "weight");
    }
    put(*section("model"), "linear", std::move(linear));
    put(*section("model"), "deep", std::move(deep));
  }

  void add_next(bool named) {
    if (!named) add_role("history", "bought", items_);
    add_role("item", "next", items_);
    const std::vector<std::string> attributes = ids(true);
    if (attributes.empty()) return;
    if (!named) add_role("history_attributes", "bought_" + attributes[0], attributes[0]);
    add_role("attributes", "next_" + attributes[0], attributes[0]);
  }

  /// Spells the name of a rule as the library does, "Adam" as "adam".
  void spell_rule() {
    toml::table* optimizer = job_["optimizer"].as_table();
    if (optimizer == nullptr) return;
    const std::string given = (*optimizer)["rule"].value_or(std::string());
    std::vector<std::string> names = optimizer_rules();
    for (OptimizerVariant& variant : optimizer_variants()) names.push_back(std::move(variant.name));
    for (const std::string& rule : names) {
      if (given == rule || !equal_in_any_case(given, rule)) continue;
      optimizer->insert_or_assign("rule", rule);
      changed_ = true;
    }
  }

  void fill_optimizer() {
    toml::table* optimizer = section("optimizer");
    if (optimizer == nullptr) return;
    const std::string rule = (*optimizer)["rule"].value_or(std::string(recipe_.rule));
    put(*optimizer, "rule", rule);
    if (rule == recipe_.rule) {
      put(*optimizer, "learning_rate", recipe_.learning_rate);
      if (recipe_.kind == "mf") put(*optimizer, "decay", kRatingsDecay);
      if (recipe_.kind == "ctr") put(*optimizer, "initial_accumulator_value", kClicksAccumulator);
    }
    for (const auto& [name, rate] : kRates) {
      if (name == rule) put(*optimizer, "learning_rate", rate);
    }
  }

  void fill_schedule() {
    toml::table* schedule = section("schedule");
    if (schedule == nullptr) return;
    put(*schedule, "batch", recipe_.batch);
    put(*schedule, "epochs", recipe_.epochs);
    if (recipe_.kind == "skipgram") put(*schedule, "rate", "linear");
  }

  void fill_model() {
    toml::table& model = *section("model");
    if (recipe_.regularization > 0) put(model, "regularization", recipe_.regularization);
    if (recipe_.kind != "ctr") return;
    if (model.contains("deep") || has("data", "numbers"))
      put(model, "hidden", toml::array{128, 64});
    toml::table dense{{"learning_rate", 0.01}, {"initial_accumulator", 0.01}};
    dense.is_inline(true);
    put(model, "dense", std::move(dense));
    toml::table* data = job_["data"].as_table();
    if (data != nullptr && !has_any("data", {"range", "positive", "negative"}))
      put(*data, "range", toml::array{0, 1});
  }

  /// True if the model takes a table for its numbers, one a row.
  bool is_for_numbers(const std::string& name) const {
    const toml::table& model = *job_["model"].as_table();
    if (model["user_bias"].value_or(std::string()) == name) return true;
    if (model["item_bias"].value_or(std::string()) == name) return true;
    const toml::array* linear = model["linear"].as_array();
    return linear != nullptr && std::any_of(linear->begin(), linear->end(), [&](const auto& node) {
             return node.value_or(std::string()) == name;
           });
  }

  void fill_table(const std::string& name, toml::table& table) {
    const bool numbers = is_for_numbers(name);
    const std::int64_t dim = numbers ? 1 : dim_;
    put(table, "dim", dim);
    const bool contexts =
        recipe_.kind == "skipgram" && job_["model"]["context"].value_or(std::string()) == name;
    toml::table first;
    if (numbers || contexts) {
      first.insert("kind", "zeros");
    } else if (recipe_.kind == "skipgram") {
      const double bound = 0.5 / static_cast<double>(table["dim"].value_or(dim));
      first = toml::table{{"kind", "uniform"}, {"low", -bound}, {"high", bound}};
    } else {
      first = toml::table{{"kind", "normal"}, {"stddev", recipe_.stddev}};
    }
    first.is_inline(true);
    put(table, "initializer", std::move(first));
  }

  toml::table& job_;
  const Recipe& recipe_;
  std::int64_t dim_;
  std::string users_, items_;
  bool changed_ = false;
};

/// Returns the recipe of a job's kind of model; null if there is none.
const Recipe* recipe_of(const toml::table& job) {
  const std::string kind = job["model"]["kind"].value_or(std::string());
  for (const Recipe& recipe : kRecipes) {
    if (recipe.kind == kind) return &recipe;
  }
  return nullptr;
}

}  // namespace

bool fill_defaults(toml::table& job) {
  const Recipe* recipe = recipe_of(job);
  return recipe != nullptr && Filling(job, *recipe).run();
}

std::string note_of_defaults(const toml::table& job) {
  const Recipe* recipe = recipe_of(job);
  toml::table copy = job;
  return recipe == nullptr ? "" : Filling(copy, *recipe).note();
}

std::optional<std::int64_t> stable_batch_of_ratings(double share) {
  constexpr double kMostRate = 0.5;
  constexpr const Recipe& recipe = kRecipes[0];
  static_assert(recipe.kind == "mf");
  const double most = kMostRate / recipe.learning_rate / share;
  if (most >= static_cast<double>(recipe.batch)) return std::nullopt;
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
}

}  // namespace embertable::jobs
