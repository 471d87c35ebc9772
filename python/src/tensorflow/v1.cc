// Binds the engine of TensorFlow's first TPUEmbedding API. embertable/v1.py has its values.
#include "embertable/tensorflow/v1.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/interruption.h"
#include "embertable/tensorflow/tpu_embedding_configuration.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/callback.h"
#include "python/src/calls.h"
#include "python/src/checkpoint.h"
#include "python/src/classes/collected.h"
#include "python/src/dict_items.h"
#include "python/src/engine.h"
#include "python/src/gil.h"
#include "python/src/python_initializer.h"
#include "python/src/row_access.h"
#include "python/src/row_gradients.h"
#include "python/src/text_caster.h"
#include "python/src/tracing.h"

namespace embertable::python {
namespace {

/// The functions that an engine of the first API calls, each once: tables with the same one share
/// its C++ side.
class Functions {
 public:
  std::shared_ptr<const v1::LearningRateFunction> rate(nb::handle function) {
    auto& known = rates_[function.ptr()];
    if (!known) {
      callbacks_.push_back(make_callback(function, "learning_rate_fn"));
      known = std::make_shared<const v1::LearningRateFunction>(
          [callback = callbacks_.back()](std::int64_t step) {
            return with_gil(
                [&] { return number((*callback)(step), "what a learning_rate_fn returns"); });
          });
    }
    return known;
  }
  CallbackPtr keep(CallbackPtr callback) {
    callbacks_.push_back(callback);
    return callback;
  }

  template <class Visit>
  void references(Visit visit) {
    for (const CallbackPtr& callback : callbacks_) visit(callback->function());
  }

 private:
  std::map<PyObject*, std::shared_ptr<const v1::LearningRateFunction>> rates_;
  std::vector<CallbackPtr> callbacks_;
};

/// Reads the fields of a parameter class. A field that is None keeps its value.
class ParameterFields {
 public:
  explicit ParameterFields(nb::handle object) : object_(object) {}

  void operator()(const char* name, double& field) const {
    if (const nb::object value = object_.attr(name); !value.is_none()) field = number(value, name);
  }
  void operator()(const char* name, std::optional<double>& field) const {
    if (const nb::object value = object_.attr(name); !value.is_none()) field = number(value, name);
  }
  void operator()(const char* name, bool& field) const {
    const nb::object value = object_.attr(name);
    if (value.is_none()) return;
    if (!PyBool_Check(value.ptr()))
      throw TypeError(std::string(name) + " must be a bool, got " + type_text(value));
    field = value.is(nb::bool_(true));
  }
  void operator()(OptimizerOptions& options) const {
    const ParameterFields& self = *this;
    self("use_gradient_accumulation", options.use_gradient_accumulation);
    self("clip_weight_min", options.clip_weight_min);
    self("clip_weight_max", options.clip_weight_max);
    self("weight_decay_factor", options.weight_decay_factor);
    self("multiply_weight_decay_factor_by_learning_rate",
         options.multiply_weight_decay_factor_by_learning_rate);
    self("clip_gradient_min", options.clip_gradient_min);
    self("clip_gradient_max", options.clip_gradient_max);
  }

 private:
  nb::handle object_;
};

v1::OptimizationParameters parameters_from(nb::handle given) {
  const ParameterFields read(given);
  const std::string name = nb::cast<std::string>(given.type().attr("__name__"));
  const auto made = [&](auto parameters, auto fields) -> v1::OptimizationParameters {
    fields(parameters);
    if constexpr (requires { parameters.options; }) read(parameters.options);
    return parameters;
  };
  if (name == "AdagradParameters") {
    return made(v1::AdagradParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate), read("initial_accumulator", p.initial_accumulator);
    });
  }
  if (name == "ProximalAdagradParameters") {
    return made(v1::ProximalAdagradParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate), read("initial_accumulator", p.initial_accumulator);
      read("l1_regularization_strength", p.l1_regularization_strength);
      read("l2_regularization_strength", p.l2_regularization_strength);
    });
  }
  if (name == "AdamParameters") {
    return made(v1::AdamParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate), read("beta1", p.beta1), read("beta2", p.beta2);
      read("epsilon", p.epsilon), read("lazy_adam", p.lazy_adam);
      read("sum_inside_sqrt", p.sum_inside_sqrt);
    });
  }
  if (name == "FtrlParameters") {
    return made(v1::FtrlParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate);
      read("learning_rate_power", p.learning_rate_power);
      read("initial_accumulator_value", p.initial_accumulator_value);
      read("l1_regularization_strength", p.l1_regularization_strength);
      read("l2_regularization_strength", p.l2_regularization_strength);
      read("multiply_linear_by_learning_rate", p.multiply_linear_by_learning_rate);
      read("beta", p.beta), read("allow_zero_accumulator", p.allow_zero_accumulator);
    });
  }
  if (name == "ProximalYogiParameters") {
    return made(v1::ProximalYogiParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate), read("beta1", p.beta1), read("beta2", p.beta2);
      read("epsilon", p.epsilon);
      read("l1_regularization_strength", p.l1_regularization_strength);
      read("l2_regularization_strength", p.l2_regularization_strength);
      read("initial_accumulator_value", p.initial_accumulator_value);
    });
  }
  if (name == "MomentumParameters") {
    return made(v1::MomentumParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate), read("momentum", p.momentum);
      read("use_nesterov", p.use_nesterov);
    });
  }
  if (name == "RMSPropParameters") {
    return made(v1::RMSPropParameters{}, [&](auto& p) {
      read("learning_rate", p.learning_rate), read("rho", p.rho);
      read("momentum", p.momentum), read("epsilon", p.epsilon);
    });
  }
  if (name == "StochasticGradientDescentParameters") {
    return made(v1::StochasticGradientDescentParameters{},
                [&](auto& p) { read("learning_rate", p.learning_rate); });
  }
  if (name == "FrequencyEstimatorParameters") {
    return made(v1::FrequencyEstimatorParameters{}, [&](auto& p) {
      read("tau", p.tau), read("max_delta", p.max_delta);
      read("outlier_threshold", p.outlier_threshold);
      read("weight_exponent", p.weight_exponent);
    });
  }
  throw ValueError("optimization_parameters must be one of the classes ...Parameters, got " +
                   type_text(given));
}

std::optional<v1::OptimizationParameters> parameters_or_none(nb::handle given) {
  if (given.is_none()) return std::nullopt;
  return parameters_from(given);
}

v1::TableConfig v1_table(nb::handle given, Functions& functions) {
  v1::TableConfig table;
  table.vocabulary_size = integer(given.attr("vocabulary_size"), "vocabulary_size");
  table.dimension = integer32(given.attr("dimension"), "dimension");
  if (const nb::object first = given.attr("initializer"); !first.is_none()) {
    const PythonInitializer* initializer = nullptr;
    if (!nb::try_cast(first, initializer) || !initializer)
      throw TypeError("initializer must be an Initializer, got " + type_text(first));
    table.initializer = initializer->value;
    if (initializer->function) functions.keep(initializer->function);
  }
  const nb::object combiner = given.attr("combiner");
  table.combiner.reset();
  if (!combiner.is_none()) {
    if (!PyUnicode_Check(combiner.ptr()))
      throw ValueError("combiner must be 'sum', 'mean', 'sqrtn' or None, got " + text(combiner));
    table.combiner = parse_combiner(text(combiner));
  }
  table.hot_id_replication = nb::cast<bool>(given.attr("hot_id_replication"));
  if (const nb::object rate = given.attr("learning_rate"); !rate.is_none())
    table.learning_rate = number(rate, "learning_rate");
  if (const nb::object rate = given.attr("learning_rate_fn"); !rate.is_none())
    table.learning_rate_fn = functions.rate(rate);
  table.optimization_parameters = parameters_or_none(given.attr("optimization_parameters"));
  return table;
}

v1::FeatureConfig v1_feature(nb::handle given) {
  v1::FeatureConfig feature;
  feature.table_id = utf8(given.attr("table_id"), "table_id");
  feature.max_sequence_length = integer(given.attr("max_sequence_length"), "max_sequence_length");
  if (const nb::object key = given.attr("weight_key"); !key.is_none())
    feature.weight_key = utf8(key, "weight_key");
  return feature;
}

/// Arrays of one call, which its data borrow from.
struct Borrowed {
  std::vector<std::unique_ptr<IntegerArray>> integers;
  std::vector<std::unique_ptr<FloatArray>> floats;

  IntegerSpan ids(nb::handle source, const std::string& what) {
    integers.push_back(std::make_unique<IntegerArray>(source, what));
    return integers.back()->span();
  }
  std::optional<IntegerSpan> ids_or_none(nb::handle source, const std::string& what) {
    if (source.is_none()) return std::nullopt;
    return ids(source, what);
  }
  std::optional<FloatSpan> weights_or_none(nb::handle source, const std::string& what) {
    if (source.is_none()) return std::nullopt;
    floats.push_back(std::make_unique<FloatArray>(source, what));
    return floats.back()->span();
  }
  Gradient gradient(nb::handle source, const std::string& what) {
    if (source.is_none()) return Gradient::none();
    floats.push_back(std::make_unique<FloatArray>(source, what));
    return {floats.back()->span(), floats.back()->shape()};
  }
};

/// Calls use(name, item) for each item of a dict.
template <class Use>
void each_of(nb::handle dict, const char* what, Use use) {
  if (!PyDict_Check(dict.ptr()))
    throw TypeError(std::string(what) + " must be a dict by name, got " + type_text(dict));
  for (const auto& [name, item] : items_of(dict))
    use(utf8(name, std::string("a name of ") + what), item);
}

nb::list list_of(nb::handle given, const char* what) {
  if (!PyList_Check(given.ptr()) && !PyTuple_Check(given.ptr()))
    throw TypeError(std::string(what) + " must be a list with one dict for each core, got " +
                    type_text(given));
  return nb::list(nb::borrow(given));
}

/// A v1::TPUEmbedding and what it calls. Enqueues run concurrently, all else one at a time.
class FirstEmbedding {
 public:
  FirstEmbedding(Functions functions, std::unique_ptr<v1::TPUEmbedding> embedding)
      : functions_(std::move(functions)), embedding_(std::move(embedding)) {}

  /// In a forked process there are no threads, and nothing is freed.
  ~FirstEmbedding() {
    if (!process_.is_here()) {
      embedding_.release();  // NOLINT: leaked
      return;
    }
    const WithoutGil nogil;
    embedding_.reset();
  }
  FirstEmbedding(const FirstEmbedding&) = delete;
  FirstEmbedding& operator=(const FirstEmbedding&) = delete;

  /// Call work(embedding) without the GIL.
  template <class Work>
  auto beside(Work work) {
    process_.require_here("the embedding");
    refuse_recording("the embedding");
    const Inside inside(this);
    const WithoutGil nogil;
    const Interruption interruption(raise_signals);
    return work(*embedding_);
  }
  template <class Work>
  auto alone(Work work) {
    return beside([&](v1::TPUEmbedding& embedding) {
      const std::lock_guard lock(one_at_a_time_);
      return work(embedding);
    });
  }

  /// Gives access for what never changes.
  const v1::TPUEmbedding& fixed() const noexcept { return *embedding_; }

  template <class Visit>
  void references(Visit visit) {
    functions_.references(visit);
  }

 private:
  Functions functions_;
  Process process_;
  std::mutex one_at_a_time_;
  std::unique_ptr<v1::TPUEmbedding> embedding_;
};

v1::Mode v1_mode(nb::handle given, const char* what) {
  const std::int64_t mode = integer(given, what);
  if (mode < 0 || mode > 2)
    throw ValueError(std::string(what) + " must be INFERENCE or TRAINING, got " + text(given));
  return static_cast<v1::Mode>(mode);
}

void construct_v1(FirstEmbedding* self, nb::handle tables, nb::handle features,
                  nb::handle batch_size, nb::handle mode, nb::handle parameters, bool pipelined,
                  const std::string& partition_strategy, const std::string& profile_data_directory,
                  nb::handle num_hosts, nb::handle num_cores, nb::handle threads, nb::handle seed,
                  nb::handle queue_capacity, nb::handle log) {
  Functions functions;
  v1::TPUEmbedding::Tables of_tables;
  each_of(tables, "table_to_config_dict", [&](const std::string& name, nb::handle table) {
    of_tables.emplace(name, v1_table(table, functions));
  });
  v1::TPUEmbedding::Features of_features;
  each_of(features, "feature_to_config_dict", [&](const std::string& name, nb::handle feature) {
    of_features.emplace(name, v1_feature(feature));
  });
  v1::Options options;
  options.partition_strategy = partition_strategy;
  options.profile_data_directory = profile_data_directory;
  options.device_config.num_hosts = integer32(num_hosts, "num_hosts");
  options.device_config.num_cores = integer32(num_cores, "num_cores");
  if (!threads.is_none())
    options.device_config.executor = make_thread_pool(integer32(threads, "threads"));
  options.engine.pipeline_execution_with_tensor_core = pipelined;
  options.engine.seed = seed_of(seed);
  options.engine.queue_capacity = integer32(queue_capacity, "queue_capacity");
  options.engine.log = log_to(functions.keep(make_callback(log, "log")));
  auto made = std::make_unique<v1::TPUEmbedding>(
      std::move(of_tables), std::move(of_features), integer(batch_size, "batch_size"),
      v1_mode(mode, "mode"), parameters_or_none(parameters), std::move(options));
  new (self) FirstEmbedding(std::move(functions), std::move(made));
}

std::string core_text(std::size_t core, const std::string& feature) {
  return "core " + std::to_string(core) + ", feature '" + feature + "'";
}

/// Reads enqueue data: `Data` has the attribute `place` beside ids and weights.
template <class Data>
std::vector<std::map<std::string, Data>> enqueue_data(const nb::list& cores, const char* place,
                                                      Borrowed& kept) {
  std::vector<std::map<std::string, Data>> all;
  for (std::size_t core = 0; core < nb::len(cores); ++core) {
    all.emplace_back();
    each_of(cores[core], "enqueue_datas", [&](const std::string& name, nb::handle data) {
      const std::string what = core_text(core, name);
      if (!nb::hasattr(data, place))
        throw TypeError(what +
                        ": all data of a call must be EnqueueData, or all RaggedEnqueueData, "
                        "got " +
                        type_text(data));
      all.back().emplace(
          name, Data{kept.ids(data.attr("embedding_indices"), what + ": embedding_indices"),
                     kept.ids_or_none(data.attr(place), what + ": " + place),
                     kept.weights_or_none(data.attr("aggregation_weights"),
                                          what + ": aggregation_weights")});
    });
  }
  return all;
}

void enqueue_first(FirstEmbedding& self, nb::handle datas, nb::handle mode_override,
                   nb::handle timeout) {
  const std::chrono::milliseconds wait = wait_of(timeout);
  const v1::Mode mode =
      mode_override.is_none() ? v1::Mode::kUnspecified : v1_mode(mode_override, "mode_override");
  const nb::list cores = list_of(datas, "enqueue_datas_list");
  bool ragged = false;
  for (const nb::handle core : cores)
    if (PyDict_Check(core.ptr()))
      for (const auto& [name, data] : items_of(core))
        ragged = ragged || nb::hasattr(data, "row_splits");
  Borrowed kept;
  if (ragged) {
    const auto all = enqueue_data<v1::RaggedEnqueueData>(cores, "row_splits", kept);
    self.beside([&](v1::TPUEmbedding& embedding) { embedding.enqueue(all, mode, wait); });
  } else {
    const auto all = enqueue_data<v1::EnqueueData>(cores, "sample_indices", kept);
    self.beside([&](v1::TPUEmbedding& embedding) { embedding.enqueue(all, mode, wait); });
  }
}

nb::list first_activations(FirstEmbedding& self, nb::handle timeout) {
  const std::chrono::milliseconds wait = wait_of(timeout);
  auto* kept = new Activations(
      self.alone([&](v1::TPUEmbedding& embedding) { return embedding.get_activations(wait); }));
  const nb::object owner =
      nb::capsule(kept, [](void* held) noexcept { delete static_cast<Activations*>(held); });
  const auto& features = self.fixed().layout().features();
  nb::list cores;
  for (std::int32_t core = 0; core < kept->replicas(); ++core) {
    nb::dict by_feature;
    for (std::int64_t f = 0; f < kept->features(); ++f) {
      const Activation activation = (*kept)(f, core);
      by_feature[decoded(features[f].name)] =
          numpy_view(const_cast<float*>(activation.values.data()), activation.shape.dims(), owner);
    }
    cores.append(by_feature);
  }
  return cores;
}

std::optional<std::int64_t> global_step(nb::handle step) {
  if (step.is_none()) return std::nullopt;
  return integer(step, "step");
}

void send_gradients(FirstEmbedding& self, nb::handle gradients, nb::handle step) {
  const nb::list cores = list_of(gradients, "gradients");
  Borrowed kept;
  std::vector<v1::TPUEmbedding::FeatureGradients> all;
  for (std::size_t core = 0; core < nb::len(cores); ++core) {
    all.emplace_back();
    each_of(cores[core], "gradients", [&](const std::string& name, nb::handle gradient) {
      all.back().emplace(name, kept.gradient(gradient, core_text(core, name) + ": the gradient"));
    });
  }
  const auto number = global_step(step);
  self.alone([&](v1::TPUEmbedding& embedding) { embedding.send_gradients(all, number); });
}

void send_table_gradients(FirstEmbedding& self, nb::handle gradients, nb::handle step) {
  const nb::list cores = list_of(gradients, "gradients");
  const auto& tables = self.fixed().layout().tables();
  std::vector<std::vector<float>> kept;
  for (std::size_t core = 0; core < nb::len(cores); ++core) {
    std::map<std::string, nb::object> by_name;
    each_of(cores[core], "gradients", [&](const std::string& name, nb::handle gradient) {
      by_name.emplace(name, nb::borrow(gradient));
    });
    for (std::int64_t t = 0; t < std::ssize(tables); ++t) {
      const std::string what = "core " + std::to_string(core) + ", table '" + tables[t].name + "'";
      const auto found = by_name.find(tables[t].name);
      if (found == by_name.end()) throw ValueError(what + " must have a gradient");
      const FloatArray array(found->second, what + ": the gradient");
      const Shape expected = self.fixed().layout().table_shape(t);
      if (array.shape() != expected)
        throw ValueError(what + ": the gradient must have shape " + expected.to_string() +
                         ", got " + array.shape().to_string());
      std::vector<float> floats;
      for (std::int64_t i = 0; i < array.span().size(); ++i) floats.push_back(array.span()[i]);
      kept.push_back(std::move(floats));
      by_name.erase(found);
    }
    if (!by_name.empty())
      throw ValueError("core " + std::to_string(core) + ": there is no table '" +
                       by_name.begin()->first + "'");
  }
  std::vector<std::span<const float>> spans(kept.begin(), kept.end());
  const auto number = global_step(step);
  self.alone([&](v1::TPUEmbedding& embedding) { embedding.send_gradients(spans, number); });
}

using FirstClass = nb::class_<FirstEmbedding>;

/// Runs work on the engine underneath.
auto asking_engine(FirstEmbedding& self) {
  return [&self](auto work) {
    return self.alone([&](v1::TPUEmbedding& embedding) { return work(embedding.engine()); });
  };
}

void bind_first_steps(FirstClass& type) {
  type.def("create_variables", [](FirstEmbedding& self) {
    self.alone([](v1::TPUEmbedding& embedding) { embedding.create_variables(); });
  });
  type.def("enqueue", enqueue_first, nb::arg("enqueue_datas_list"),
           nb::arg("mode_override") = nb::none(), nb::arg("timeout") = 0);
  type.def("get_activations", first_activations, nb::arg("timeout") = 0);
  type.def("send_gradients", send_gradients, nb::arg("gradients"), nb::arg("step") = nb::none());
  type.def("drop_dequeued_batches", [](FirstEmbedding& self) {
    return asking_engine(self)([](Embedding& engine) { return engine.drop_dequeued_batches(); });
  });
  type.def("send_table_gradients", send_table_gradients, nb::arg("gradients"),
           nb::arg("step") = nb::none());
}

void bind_first_values(FirstClass& type) {
  type.def_prop_ro("layout", [](const FirstEmbedding& self) { return self.fixed().layout(); });
  type.def_prop_ro("batch_size",
                   [](const FirstEmbedding& self) { return self.fixed().batch_size(); });
  type.def_prop_ro("batch_size_per_core",
                   [](const FirstEmbedding& self) { return self.fixed().batch_size_per_core(); });
  type.def_prop_ro("num_hosts",
                   [](const FirstEmbedding& self) { return self.fixed().num_hosts(); });
  type.def_prop_ro("num_cores",
                   [](const FirstEmbedding& self) { return self.fixed().num_cores(); });
  type.def_prop_ro("mode", [](const FirstEmbedding& self) {
    return static_cast<std::int64_t>(self.fixed().mode());
  });
  type.def(
      "ids_of_host",
      [](FirstEmbedding& self, const std::string& table, nb::handle host) {
        const std::int32_t number = integer32(host, "host");
        return copy_of(self.alone([&](const v1::TPUEmbedding& embedding) {
          return embedding.ids_of_host(table, number);
        }));
      },
      nb::arg("table"), nb::arg("host"));
  type.def("configuration", [](FirstEmbedding& self) {
    const std::string bytes = self.alone(
        [](v1::TPUEmbedding& embedding) { return wire::serialize(embedding.configuration()); });
    return nb::bytes(bytes.data(), bytes.size());
  });
}

void bind_first_rows(FirstClass& type) {
  type.def_prop_ro("step", [](const FirstEmbedding& self) { return self.fixed().engine().step(); });
  type.def_prop_ro("tables", [](FirstEmbedding& self) {
    return asking_engine(self)([](const Embedding& engine) { return engine.tables(); });
  });
  type.def(
      "read_rows",
      [](FirstEmbedding& self, const std::string& variable, nb::handle ids) {
        return rows_read(asking_engine(self), variable, ids);
      },
      nb::arg("variable"), nb::arg("ids").none());
  type.def(
      "assign_rows",
      [](FirstEmbedding& self, const std::string& variable, nb::handle ids, nb::handle values) {
        assign_rows_to(asking_engine(self), variable, ids, values);
      },
      nb::arg("variable"), nb::arg("ids").none(), nb::arg("values").none());
  type.def(
      "save",
      [](FirstEmbedding& self, nb::handle run, nb::handle state, nb::handle id_maps) {
        const CallerState kept = caller_state(state);
        const auto maps = id_maps_of(id_maps);
        const auto open = open_run(run);
        return asking_engine(self)(
            [&](const Embedding& engine) { return engine.save(*open, kept, maps); });
      },
      nb::arg("run"), nb::arg("state") = nb::none(), nb::arg("id_maps") = nb::none());
  type.def(
      "restore",
      [](FirstEmbedding& self, const std::filesystem::path& path, nb::handle tables, bool partial) {
        const RestoreOptions options = restore_options(tables, partial, nb::none());
        return asking_engine(self)(
            [&](Embedding& engine) { return engine.restore(path, options); });
      },
      nb::arg("path"), nb::arg("tables") = nb::none(), nb::arg("partial") = false);
  type.def("digest", [](FirstEmbedding& self) {
    return asking_engine(self)([](const Embedding& engine) { return engine.digest(); });
  });
}

}  // namespace

void bind_v1(nb::module_& module) {
  nb::module_ first = module.def_submodule("_v1");
  FirstClass type(first, "TPUEmbedding", nb::type_slots(Collected<FirstEmbedding>::slots),
                  "The engine of embertable.v1.TPUEmbedding.");
  type.def("__init__", construct_v1, nb::arg("tables"), nb::arg("features"), nb::arg("batch_size"),
           nb::arg("mode"), nb::arg("optimization_parameters").none(), nb::kw_only(),
           nb::arg("pipelined"), nb::arg("partition_strategy"), nb::arg("profile_data_directory"),
           nb::arg("num_hosts"), nb::arg("num_cores"), nb::arg("threads").none(), nb::arg("seed"),
           nb::arg("queue_capacity"), nb::arg("log"));
  bind_first_steps(type);
  bind_first_values(type);
  bind_first_rows(type);
  first.def(
      "check_table",
      [](nb::handle table) {
        Functions functions;
        v1::validate(v1_table(table, functions));
      },
      nb::arg("table"), "Raises what breaks a rule of a table.");
  first.def(
      "check_feature", [](nb::handle feature) { v1::validate(v1_feature(feature)); },
      nb::arg("feature"), "Raises what breaks a rule of a feature.");
  first.def(
      "check_parameters",
      [](nb::handle parameters) { v1::make_optimizer(parameters_from(parameters)); },
      nb::arg("parameters"), "Raises what breaks a rule of a parameter class.");
}

}  // namespace embertable::python
