// Binds EngineStrategy, which the original calls an accelerator.
#include "embertable/strategy.h"

#include <cmath>
#include <functional>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"
#include "python/src/collected.h"
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

void construct_strategy(PythonStrategy* self, nb::handle hosts, nb::handle replicas_per_host,
                        const std::string& sharding, nb::handle threads, nb::handle timeout,
                        nb::handle exchange, nb::handle deadline) {
  StrategyOptions options;
  options.hosts = integer32(hosts, "strategy: hosts");
  options.replicas_per_host = integer32(replicas_per_host, "strategy: replicas_per_host");
  options.sharding = sharding_of(sharding);
  if (!threads.is_none())
    options.executor = make_thread_pool(integer32(threads, "strategy: threads"));
  options.timeout = timeout_of(timeout);
  options.exchange = chosen_exchange(exchange, deadline, "strategy");
  const CallbackPtr python_exchange = python_object_of(options.exchange);
  new (self) PythonStrategy{make_strategy(std::move(options)), python_exchange};
}

std::string strategy_repr(const PythonStrategy& self) {
  const StrategyOptions& options = self.value->options();
  return "EngineStrategy(hosts=" + std::to_string(options.hosts) +
         ", replicas_per_host=" + std::to_string(options.replicas_per_host) + ", sharding='" +
         (options.sharding == Sharding::kDiv ? "div" : "mod") + "')";
}

}  // namespace

void bind_strategy(nb::module_& module) {
  const auto number = [](auto read) {
    return [read](const PythonStrategy& self) { return std::invoke(read, *self.value); };
  };
  nb::class_<PythonStrategy>(
      module, "EngineStrategy", nb::type_slots(Collected<PythonStrategy>::slots),
      "What the original calls the accelerator: it owns the tables that an accelerated Embedding "
      "builds.\nhosts own one shard of every table each; replicas have a queue, a batch and "
      "activations of their\nown. threads: of the parallel regions, one per CPU for None. timeout: "
      "seconds that a call waits\nfor other replicas before it raises. exchange: connects this "
      "process, which is one of the hosts, with\nthose that are the others: 'mpi', a communicator "
      "of "
      "mpi4py, or an Exchange;\nNone: this process is all hosts. All processes run the same "
      "program. "
      "An exchange serves one strategy at a\ntime. deadline: of MPI, seconds without a message "
      "after "
      "which a host counts as missing, 60 for None.")
      .def("__init__", construct_strategy, nb::arg("hosts") = 1, nb::arg("replicas_per_host") = 1,
           nb::arg("sharding") = "div", nb::arg("threads") = nb::none(), nb::arg("timeout") = 60.0,
           nb::arg("exchange") = nb::none(), nb::arg("deadline") = nb::none())
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
      .def(
          "initialize",
          [](const PythonStrategy& self) {
            const WithoutGil nogil;  // a running step may need it
            self.value->initialize();
          },
          "Drops all tables; another engine may build then.")
      .def("__repr__", strategy_repr);
}

}  // namespace embertable::python
