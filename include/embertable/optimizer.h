#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "embertable/initializer.h"
#include "embertable/version.h"

namespace embertable {

struct TableConfig;

/// A learning rate: a constant, or a function that is asked once per application of gradients. A
/// value. Two dynamic rates are the same rate (and share a tag) if they are copies of one object. A
/// rate must be finite and >= 0: a constant is checked when the optimizer is built, the result of a
/// function by the step that asks it.
class EMBERTABLE_API LearningRate {
 public:
  using Function = std::function<double()>;

  /// Receives the number of the step, 1 for the first; the number goes on after a restore.
  using Schedule = std::function<double(std::int64_t step)>;

  LearningRate(double constant) : constant_(constant) {}  // NOLINT: a number is a rate

  /// Make a dynamic rate. They throw ValueError for an empty function.
  static LearningRate dynamic(Function function);
  static LearningRate scheduled(Schedule schedule);

  /// True if there is a function of either kind.
  bool is_dynamic() const noexcept { return function_ != nullptr; }

  /// Returns the constant; 0 if the rate is dynamic.
  double constant() const noexcept { return constant_; }

  /// Returns the constant, or what the function returns for `step`.
  double value(std::int64_t step = 1) const { return function_ ? (*function_)(step) : constant_; }

  /// True for equal constants, or one function.
  friend bool operator==(const LearningRate& a, const LearningRate& b) noexcept = default;

 private:
  double constant_ = 0;
  std::shared_ptr<const Schedule> function_;
};

/// The value of a parameter of a rule: a number, true or false, or the name of a choice.
class EMBERTABLE_API Setting {
 public:
  Setting(double number) : value_(number) {}                    // NOLINT: a number is a setting
  Setting(int number) : value_(static_cast<double>(number)) {}  // NOLINT
  Setting(bool flag) : value_(flag) {}                          // NOLINT
  Setting(std::string choice) : value_(std::move(choice)) {}    // NOLINT
  Setting(const char* choice) : value_(std::string(choice)) {}  // NOLINT

  const std::variant<double, bool, std::string>& value() const noexcept { return value_; }

  /// Returns a text such as "0.5", "true" or "'l2'".
  std::string to_string() const;

  friend bool operator==(const Setting& a, const Setting& b) = default;

 private:
  std::variant<double, bool, std::string> value_;
};

/// Returns the first values of one slot. Called once for each table and slot when an engine is
/// assembled; `row_wise`: the slot has one number per row. An engine with a strategy fills slots
/// shard by shard and refuses `Initializer::values`. Source: TF tpu_embedding_v2_utils.py,
/// slot_variable_creation_fn.
using SlotInitializer =
    std::function<Initializer(const TableConfig& table, std::string_view slot, bool row_wise)>;

/// Steps around the formula of any rule when a row is updated, in this order: its summed gradient
/// is clipped, the row decays, the rule steps it, the row is clipped. Numbers are rounded to
/// binary32. Source: TF tpu_embedding_v2_utils.py, _Optimizer.
struct OptimizerOptions {
  /// Limits of each element of a row's summed gradient; unset: none. They require accumulation.
  std::optional<double> clip_gradient_min, clip_gradient_max;

  /// Decays a row before the formula: w = w - factor * w, or w - factor * rate * w. The decay is
  /// decoupled: no slot sees it. Rules that have a decay of their own refuse it.
  double weight_decay_factor = 0;
  bool multiply_weight_decay_factor_by_learning_rate = false;

  /// Limits of each element of a row after its step; unset: none. Slots are never clipped.
  std::optional<double> clip_weight_min, clip_weight_max;

  /// Sums the gradients of a row before its step. If false, every occurrence of a row in a step is
  /// a step of its own, in the order in which the sum would take them.
  bool use_gradient_accumulation = true;

  /// Kept and reported; it has no effect here.
  bool low_dimensional_packing_status = false;

  /// Replaces the rule's first values of slots when not null.
  std::shared_ptr<const SlotInitializer> slot_variable_creation_fn;

  /// Step counter of rules that have one, any finite number; others ignore it. Unset: the number of
  /// the step. A function has a tag like a rate.
  std::optional<LearningRate> step_counter;

  friend bool operator==(const OptimizerOptions&, const OptimizerOptions&) = default;
};

/// Describes a step; it is the same for all rows of a table.
struct CustomStep {
  float learning_rate = 0;
  std::int64_t number = 1;                 ///< number of the step, from 1; a restore continues it
  std::span<const float> hyperparameters;  ///< values of CustomRule::hyperparameters, in order
};

/// Up to 16 rows in one step of a caller-supplied rule. Borrowed for the call, which may write rows
/// and slots.
struct CustomTile {
  std::span<float* const> row;             ///< [rows], each dim floats
  std::span<const float* const> gradient;  ///< [rows], each dim floats: summed and clipped
  std::span<float* const* const> slot;     ///< by slot, then by row: dim floats, or one
  std::int32_t dim = 0;
  CustomStep step;
};

/// One row in one step of a caller-supplied rule. Borrowed for the call, which may write the row
/// and its slots.
struct CustomRow {
  std::span<float> row;                    ///< [dim]
  std::span<const float> gradient;         ///< [dim]
  std::span<const std::span<float>> slot;  ///< by slot: [dim] or [1]
  CustomStep step;
};

/// A caller-supplied rule. Its function is called from several threads at once, for different rows.
/// How rows are grouped into calls depends on the machine, so a row's result must depend on nothing
/// but that row, its slots, its gradient and the step. Clipping, decay and the sum of gradients are
/// done around it. If it throws, the step throws the same exception, and the engine is failed until
/// a restore.
///
/// Source: TF tpu_embedding_v2_utils.py, CustomOptimizer.
struct CustomRule {
  using Tiles = std::function<void(const CustomTile& tile)>;
  using Rows = std::function<void(const CustomRow& row)>;

  /// Steps one element. Inputs: gradient, row, slots in their order, and the rate if
  /// `rate_is_an_input`; outputs: row, slots.
  using Elements = std::function<void(std::span<const float> inputs, std::span<float> outputs)>;

  /// Names the rule in messages and checkpoints. Not empty, and not a name that Optimizer takes for
  /// a rule or a variant, in any case of its letters.
  std::string name = "custom";

  /// Names of the slots, at most 7, all different, not empty and without '/'; a checkpoint has
  /// "<table>/<slot>".
  std::vector<std::string> slot_names;

  /// First values of the slots, one initializer for each name.
  std::vector<Initializer> slot_initializers;

  /// Number of axes of each slot. 2: dim numbers per row; 1: one number per row, which Elements do
  /// not have. Empty: every slot has 2.
  std::vector<std::int32_t> slot_dims;

  /// At most 14 finite numbers, kept and compared by name, passed to the function as binary32.
  std::vector<std::pair<std::string, double>> hyperparameters;

  /// Steps tiles of rows, single rows, or single elements. Not empty.
  std::variant<Tiles, Rows, Elements> function;

  /// Makes the rate the last input of Elements; the other functions find it in the step.
  bool rate_is_an_input = false;

  /// If true, rows that no id names take each step too, with a gradient of zeros. Requires
  /// accumulation.
  bool steps_every_row = false;
};

/// Says how a gradient changes a row: the name of a rule (one of `optimizer_rules`), its parameters
/// and the options common to all rules. A value to copy and compare; complete and checked once
/// constructed.
class EMBERTABLE_API Optimizer {
 public:
  using Settings = std::vector<std::pair<std::string, Setting>>;

  /// Parameters as numbers: a flag is 0 or 1, a choice its position.
  using Parameters = std::vector<std::pair<std::string, double>>;

  /// Makes an optimizer by name. `rule` is a rule's name, or that of a variant (see
  /// OptimizerVariant), which stands for its rule. Parameters that are not named keep the variant's
  /// settings, else the rule's defaults. A constant rate must be finite and >= 0. Throws ValueError
  /// for an unknown rule or parameter (with the nearest name), one that is given twice, and, naming
  /// rule, field, range and value, a value that is outside its range or leaves it when rounded to
  /// binary32; also for limits that are inverted, gradient limits without accumulation, and options
  /// that the rule does not support.
  explicit Optimizer(std::string_view rule, LearningRate learning_rate,
                     const Settings& settings = {}, OptimizerOptions options = {});

  /// Makes an optimizer of a caller-supplied rule, which gives it its name.
  /// Throws ValueError for an incomplete rule, naming it and what it lacks, and for options like
  /// the constructor.
  static Optimizer custom(CustomRule rule, LearningRate learning_rate = 0.01,
                          OptimizerOptions options = {});

  const std::string& rule() const noexcept { return rule_; }

  /// Returns the caller-supplied rule, or null.
  const std::shared_ptr<const CustomRule>& custom_rule() const noexcept { return custom_rule_; }

  const LearningRate& learning_rate() const noexcept { return learning_rate_; }
  const OptimizerOptions& options() const noexcept { return options_; }

  /// Returns every parameter of the rule but the rate, in the rule's order.
  const Parameters& parameters() const noexcept { return parameters_; }

  /// Returns a copy with another rate; throws ValueError for one that is not allowed.
  Optimizer with_learning_rate(LearningRate learning_rate) const;

  /// Returns one parameter. Throws KeyError for a parameter that the rule does not have.
  double parameter(std::string_view name) const;

  /// Returns a text such as "name(learning_rate=0.1, epsilon=1e-08)", with every parameter and
  /// those options that are set; a function is "dynamic".
  std::string to_string() const;

  /// True if all parts are equal; caller-supplied rules are equal if they are copies of one object.
  friend bool operator==(const Optimizer& a, const Optimizer& b) noexcept = default;

 private:
  Optimizer(std::shared_ptr<const CustomRule> rule, LearningRate learning_rate,
            OptimizerOptions options);

  std::string rule_;
  LearningRate learning_rate_;
  Parameters parameters_;
  OptimizerOptions options_;
  std::shared_ptr<const CustomRule> custom_rule_;
};

/// Makes an optimizer whose program works element by element, like the proto's
/// user_defined_program: `outputs` are row and slots "Slot_0", "Slot_1", ...; `inputs` are
/// gradient, row, slots and, if there is one more, the rate. slot_initializers: one for each slot;
/// empty: zeros. With accumulation there may be 6 slots, else 7. Throws ValueError for other
/// numbers, naming both, and what `Optimizer::custom` throws. Source: TF
/// optimization_parameters.proto, UserDefinedProgramParameters.
EMBERTABLE_API Optimizer user_defined_program(std::int32_t inputs, std::int32_t outputs,
                                              CustomRule::Elements program,
                                              LearningRate learning_rate = 0.0,
                                              std::vector<Initializer> slot_initializers = {},
                                              OptimizerOptions options = {});

/// Returns the names of the rules that `Optimizer` knows, sorted.
EMBERTABLE_API std::vector<std::string> optimizer_rules();

/// Names another system's optimizer, "torch.SparseAdam": the rule with the same formula, and that
/// system's defaults.
struct OptimizerVariant {
  std::string name;              ///< name that `Optimizer` takes
  std::string rule;              ///< one of `optimizer_rules`
  Optimizer::Settings settings;  ///< by parameter; settings that `Optimizer` receives override them
  std::string note;              ///< says what is the same, and what differs
};

/// Returns every variant, sorted by name.
EMBERTABLE_API std::vector<OptimizerVariant> optimizer_variants();

/// Returns what to know of a rule's name, in any case, that other systems give to another formula,
/// as "Adam" of torch: a sentence naming their variants. Empty for any other name.
EMBERTABLE_API std::string optimizer_note(std::string_view name);

}  // namespace embertable
