// Binds EngineStrategy, which the original calls an accelerator.
#include "embertable/strategy.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <functional>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/classes/collected.h"
#include "python/src/exchange.h"
#include "python/src/gil.h"
#include "python/src/python_strategy.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

Sharding sharding_of(const std::string& name) {
  if (name == "div") return Sharding::kDiv;
  if (name == "mod") return Sharding::kMod;
  throw ValueError("strategy: sharding must be 'div' or 'mod', got '" + name + "'");
}

std::chrono::milliseconds timeout_of(nb::handle value) {
  const double seconds = number(value, "timeout");
  if (!(seconds > 0 && seconds <= 1e9))
    throw ValueError("strategy: timeout must be above 0 seconds and at most 1e9, got " +
                     std::to_string(seconds));
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1000)));
}

std::vector<std::string> device_names(nb::handle devices) {
  std::vector<std::string> names;
  if (PyUnicode_Check(devices.ptr()) || !nb::hasattr(devices, "__iter__"))
    throw TypeError("strategy: devices must be a list of names, got " + type_text(devices));
  for (const nb::handle device : devices) names.push_back(utf8(device, "strategy: a device"));
  return names;
}

void construct_strategy(PythonStrategy* self, nb::handle hosts, nb::handle replicas_per_host,
                        const std::string& sharding, nb::handle threads, nb::handle timeout,
                        nb::handle exchange, nb::handle deadline, nb::handle cores_per_replica,
                        nb::handle devices) {
  StrategyOptions options;
  options.hosts = integer32(hosts, "strategy: hosts");
  options.replicas_per_host = integer32(replicas_per_host, "strategy: replicas_per_host");
  options.sharding = sharding_of(sharding);
  std::optional<std::int32_t> thread_count;
  if (!threads.is_none()) {
    thread_count = integer32(threads, "strategy: threads");
    options.executor = make_thread_pool(*thread_count);
  }
  options.timeout = timeout_of(timeout);
  if (!cores_per_replica.is_none())
    options.cores_per_replica = integer32(cores_per_replica, "strategy: cores_per_replica");
  if (!devices.is_none()) options.devices = device_names(devices);
  options.exchange = chosen_exchange(exchange, deadline, "strategy");
  const CallbackPtr python_exchange = python_object_of(options.exchange);
  new (self) PythonStrategy{make_strategy(std::move(options)), python_exchange, thread_count};
}

const char* name_of(Sharding sharding) { return sharding == Sharding::kDiv ? "div" : "mod"; }

std::string strategy_repr(nb::handle self) {
  const StrategyOptions& options = nb::cast<const PythonStrategy&>(self).value->options();
  return text(self.type().attr("__name__")) + "(hosts=" + std::to_string(options.hosts) +
         ", replicas_per_host=" + std::to_string(options.replicas_per_host) + ", sharding='" +
         name_of(options.sharding) + "')";
}

/// Returns what makes a strategy of the same settings.
nb::tuple state_of(const PythonStrategy& self) {
  const StrategyOptions& options = self.value->options();
  if (options.exchange)
    throw TypeError(
        "a strategy with an exchange cannot be pickled or copied; make one in each process");
  return nb::make_tuple(options.hosts, options.replicas_per_host, name_of(options.sharding),
                        self.threads, static_cast<double>(options.timeout.count()) / 1000,
                        options.cores_per_replica, options.devices);
}

void take_state(PythonStrategy& self, const nb::tuple& state) {
  nb::object devices = state[6];
  if (!PyObject_IsTrue(devices.ptr())) devices = nb::none();
  construct_strategy(&self, state[0], state[1], nb::cast<std::string>(state[2]), state[3], state[4],
                     nb::none(), nb::none(), state[5], devices);
}

}  // namespace

void bind_strategy(nb::module_& module) {
  const auto number = [](auto read) {
    return [read](const PythonStrategy& self) { return std::invoke(read, *self.value); };
  };
  nb::class_<PythonStrategy>(
      module, "EngineStrategy", nb::type_slots(Collected<PythonStrategy>::slots),
      R"(What the original calls the accelerator: it owns the tables that an accelerated Embedding builds.

hosts: each owns a shard of every table; replicas_per_host: each has a queue, a batch and activations of its own; sharding:
"div", rows in blocks, or "mod"; threads: of the parallel regions, None: one per CPU; timeout: seconds that a call waits for
other replicas before it raises. exchange: connects this process, which is one of the hosts, with those that are the others:
"mpi", a communicator of mpi4py, or an Exchange; None: this process is all hosts. All processes run the same program. An
exchange serves one strategy at a time. deadline: of MPI, seconds without a message after which a host counts as missing, 60
for None. cores_per_replica: each has a queue and an equal part of its replica's batch; devices: names of all cores, in any
order. Raises ValueError and TypeError naming the field. It pickles and copies without its tables; with an exchange it does not.

>>> embertable.EngineStrategy(hosts=2, replicas_per_host=2, threads=1).replicas
4)")
      .def("__init__", construct_strategy, nb::arg("hosts") = 1, nb::arg("replicas_per_host") = 1,
           nb::arg("sharding") = "div", nb::arg("threads") = nb::none(), nb::arg("timeout") = 60.0,
           nb::arg("exchange") = nb::none(), nb::arg("deadline") = nb::none(), nb::kw_only(),
           nb::arg("cores_per_replica") = nb::none(), nb::arg("devices") = nb::none())
      .def_prop_ro("hosts", number([](const EngineStrategy& self) { return self.options().hosts; }))
      .def_prop_ro("replicas_per_host", number([](const EngineStrategy& self) {
                     return self.options().replicas_per_host;
                   }))
      .def_prop_ro("replicas", number(&EngineStrategy::replicas), "Of all hosts.")
      .def_prop_ro("host", number(&EngineStrategy::first_host),
                   "The number of this process among the hosts; 0 if it is all of them.")
      .def_prop_ro("local_replicas", number(&EngineStrategy::local_replicas),
                   "Of this process: those whose batches, activations and gradients its calls take "
                   "and give,\nnumbered from 0.")
      .def_prop_ro("first_replica", number(&EngineStrategy::first_replica),
                   "The number of this process's replica 0 among those of all hosts.")
      .def_prop_ro("cores_per_replica", number(&EngineStrategy::cores_per_replica),
                   "Each core has a queue of its own and an equal part of its replica's batch.")
      .def_prop_ro("devices", number(&EngineStrategy::devices),
                   "The name of each core, replica by replica: "
                   "'/job:worker/replica:0/task:<host>/device:TPU:<core>'.")
      .def_prop_ro("list_of_hosts", number(&EngineStrategy::list_of_hosts),
                   "The name of each host's CPU, in the order of the devices.")
      .def(
          "core_of",
          [](const PythonStrategy& self, const std::string& device) {
            return self.value->core_of(device);
          },
          nb::arg("device"),
          R"(Gives the number of the core that a name means, counted through all hosts.

device: a name with a task, "/task:1/device:TPU:0", or without, "TPU:3", which counts through all hosts.
Raises ValueError if it is no accelerator, or the strategy has none of that name.

>>> embertable.EngineStrategy(hosts=2, threads=1).core_of("/task:1/device:TPU:0")
1)")
      .def(
          "initialize",
          [](const PythonStrategy& self) {
            const WithoutGil nogil;  // a running step may need it
            self.value->initialize();
          },
          R"(Drops all tables; another engine may build then. Waits for a running step. Engines that were built before
have no content: their steps raise RuntimeError.

>>> embertable.EngineStrategy(threads=1).initialize())")
      .def("__repr__", strategy_repr)
      .def("__getstate__", state_of)
      .def("__setstate__", take_state);
}

}  // namespace embertable::python
