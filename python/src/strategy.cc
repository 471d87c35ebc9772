// Binds EngineStrategy, which the original calls an accelerator.
#include "embertable/strategy.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include "embertable/errors.h"
#include "python/src/arguments.h"
#include "python/src/bindings.h"

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

StrategyPtr make(nb::handle hosts, nb::handle replicas_per_host, const std::string& sharding,
                 nb::handle threads, nb::handle timeout) {
  StrategyOptions options;
  options.hosts = integer32(hosts, "strategy: hosts");
  options.replicas_per_host = integer32(replicas_per_host, "strategy: replicas_per_host");
  options.sharding = sharding_of(sharding);
  if (!threads.is_none())
    options.executor = make_thread_pool(integer32(threads, "strategy: threads"));
  options.timeout = timeout_of(timeout);
  return make_strategy(std::move(options));
}

std::string strategy_repr(const EngineStrategy& self) {
  const StrategyOptions& options = self.options();
  return "EngineStrategy(hosts=" + std::to_string(options.hosts) +
         ", replicas_per_host=" + std::to_string(options.replicas_per_host) + ", sharding='" +
         (options.sharding == Sharding::kDiv ? "div" : "mod") + "')";
}

}  // namespace

void bind_strategy(nb::module_& module) {
  nb::class_<EngineStrategy>(
      module, "EngineStrategy",
      "What the original calls the accelerator: it owns the tables that an accelerated Embedding "
      "builds.\nhosts own one shard of every table each; replicas have a queue, a batch and "
      "activations of their\nown. threads: of the parallel regions, one per CPU for None. timeout: "
      "seconds that a call waits\nfor other replicas before it raises.")
      .def(nb::new_(&make), nb::arg("hosts") = 1, nb::arg("replicas_per_host") = 1,
           nb::arg("sharding") = "div", nb::arg("threads") = nb::none(), nb::arg("timeout") = 60.0)
      .def_prop_ro("hosts", [](const EngineStrategy& self) { return self.options().hosts; })
      .def_prop_ro("replicas_per_host",
                   [](const EngineStrategy& self) { return self.options().replicas_per_host; })
      .def_prop_ro("replicas", &EngineStrategy::replicas)
      .def("initialize", &EngineStrategy::initialize,
           "Drops all tables; another engine may build then.")
      .def("__repr__", strategy_repr);
}

}  // namespace embertable::python
