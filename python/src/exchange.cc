// Binds Exchange: the base of exchanges that Python defines, and the class of those that C++ makes.
#include "python/src/exchange.h"

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exchange/local_exchange.h"
#include "exchange/threads_exchange.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/bindings.h"
#include "python/src/classes/described.h"
#include "python/src/classes/explained_calls.h"
#include "python/src/errors.h"
#include "python/src/exchange_adapter.h"
#include "python/src/text_caster.h"

namespace embertable::python {
namespace {

/// An exchange that C++ made, called from Python. Calls take buffers and return bytes.
class MadeExchange {
 public:
  explicit MadeExchange(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}

  const std::shared_ptr<Exchange>& get() const noexcept { return exchange_; }

  void start(std::int32_t channel, std::string stage, nb::handle messages) {
    const Turn turn(*this);
    auto round = std::make_unique<Round>();
    round->stage = std::move(stage);
    std::vector<ByteSpan> send;
    for (const nb::handle message : nb::borrow<nb::iterable>(messages)) {
      std::optional<Buffer> buffer = Buffer::of(message, PyBUF_SIMPLE);
      if (!buffer)
        throw TypeError("exchange: start: messages must be contiguous bytes, got " +
                        type_text(message));
      send.emplace_back(static_cast<const std::byte*>(buffer->view().buf), buffer->view().len);
      round->messages.push_back(std::move(*buffer));
    }
    try {
      const WithoutGil nogil;
      exchange_->start(Channel{channel}, {round->stage}, send);
    } catch (...) {
      failed_.push_back(std::move(round));
      throw;
    }
    open_[channel] = std::move(round);
  }

  nb::list finish(std::int32_t channel) {
    const Turn turn(*this);
    std::vector<ByteSpan> received(exchange_->hosts());
    {
      const WithoutGil nogil;
      exchange_->finish(Channel{channel}, received);
    }
    nb::list messages;
    for (const ByteSpan bytes : received) messages.append(nb::bytes(bytes.data(), bytes.size()));
    open_[channel].reset();
    return messages;
  }

  nb::object abort(const std::string& reason) {
    const Turn turn(*this);
    const GivenUp told = [&] {
      const WithoutGil nogil;
      return exchange_->abort(reason);
    }();
    open_ = {};
    failed_.clear();
    return to_python(told);
  }

 private:
  /// What a round borrows.
  struct Round {
    std::string stage;
    std::vector<Buffer> messages;
  };
  /// A thread's call. Throws StateError while another thread has one.
  class Turn {
   public:
    explicit Turn(MadeExchange& exchange) : lock_(exchange.calls_, std::try_to_lock) {
      if (!lock_) throw StateError("exchange: another thread is calling");
    }

   private:
    std::unique_lock<std::mutex> lock_;
  };

  std::array<std::unique_ptr<Round>, kNumChannels> open_;
  std::vector<std::unique_ptr<Round>> failed_;  ///< may be borrowed until `abort`
  std::shared_ptr<Exchange> exchange_;
  std::mutex calls_;
};

/// An Exchange object of Python's.
struct ExchangeObject {
  std::int32_t host = 0;
  std::int32_t hosts = 1;
  std::unique_ptr<MadeExchange> made;  ///< null: the class is Python's, and has its own methods

  /// Calls the methods of such a class, while an engine uses it.
  std::weak_ptr<PythonExchange> adapter;
};

void construct_exchange(ExchangeObject* self, nb::handle host, nb::handle hosts) {
  const std::int32_t number = integer32(host, "exchange: host");
  const std::int32_t count = integer32(hosts, "exchange: hosts");
  if (count < 1) throw ValueError("exchange: hosts must be >= 1, got " + std::to_string(count));
  if (number < 0 || number >= count)
    throw ValueError("exchange: host must be 0 <= host < " + std::to_string(count) + ", got " +
                     std::to_string(number));
  new (self) ExchangeObject{number, count, nullptr, {}};
}

nb::object exchange_object(std::shared_ptr<Exchange> exchange) {
  const std::int32_t host = exchange->host(), hosts = exchange->hosts();
  return nb::cast(
      ExchangeObject{host, hosts, std::make_unique<MadeExchange>(std::move(exchange)), {}});
}

nb::list exchanges_of_threads(nb::handle hosts) {
  nb::list all;
  for (auto& one : make_threads_exchange(integer32(hosts, "exchange: hosts")))
    all.append(exchange_object(std::move(one)));
  return all;
}

/// Returns the exchange of C++. Throws NotImplemented for a class that lacks a method.
MadeExchange& made_exchange(const ExchangeObject& self, const char* method) {
  if (!self.made)
    throw NotImplemented(std::string("exchange: a class derived from Exchange must define ") +
                         method);
  return *self.made;
}

void agree_on(nb::handle self, const std::string& error, const std::string& stage) {
  const std::shared_ptr<Exchange> exchange = exchange_of(self);
  const WithoutGil nogil;
  exchange->agree(error, {stage});
}

nb::object launcher() {
  const std::optional<MpiLauncher> found = find_mpi_launcher();
  if (!found) return nb::none();
  return nb::make_tuple(decoded(found->variable),
                        found->processes ? nb::object(nb::int_(*found->processes)) : nb::none());
}

}  // namespace

std::shared_ptr<Exchange> exchange_of(nb::handle value) {
  if (!nb::isinstance<ExchangeObject>(value))
    throw TypeError("exchange must be an Exchange, got " + type_text(value));
  if (!nb::inst_ready(value))
    throw TypeError("exchange: __init__ of " + type_text(value) +
                    " must call that of Exchange, with host and hosts");
  auto& object = *nb::inst_ptr<ExchangeObject>(value);
  if (object.made) return object.made->get();
  std::shared_ptr<PythonExchange> adapter = object.adapter.lock();
  if (!adapter) {
    adapter = make_python_exchange(nb::borrow(value), object.host, object.hosts);
    object.adapter = adapter;
  }
  return adapter;
}

std::shared_ptr<Exchange> mpi_exchange(nb::handle communicator, nb::handle deadline) {
  MpiOptions options;
  if (!deadline.is_none()) options.deadline_seconds = number(deadline, "deadline");
  if (!communicator.is_none()) {
    if (!nb::hasattr(communicator, "py2f"))
      throw TypeError("communicator must be one of mpi4py's, got " + type_text(communicator));
    options.communicator = integer32(communicator.attr("py2f")(), "what py2f returns");
  }
  const WithoutGil nogil;
  return make_mpi_exchange(options);
}

std::shared_ptr<Exchange> chosen_exchange(nb::handle value, nb::handle deadline,
                                          const std::string& of) {
  const bool is_text = PyUnicode_Check(value.ptr());
  if (is_text && utf8(value, "exchange") != "mpi")
    throw ValueError(of + ": exchange must be 'mpi', a communicator or an Exchange, got '" +
                     utf8(value, "exchange") + "'");
  if (is_text) return mpi_exchange(nb::none(), deadline);
  if (nb::hasattr(value, "py2f")) return mpi_exchange(value, deadline);
  if (!deadline.is_none())
    throw ValueError(of + ": deadline is of exchange='mpi' or a communicator; got exchange " +
                     type_text(value));
  return value.is_none() ? nullptr : exchange_of(value);
}

CallbackPtr python_object_of(const std::shared_ptr<Exchange>& exchange) {
  const auto* adapter = dynamic_cast<const PythonExchange*>(exchange.get());
  return adapter ? adapter->object() : nullptr;
}

void bind_exchange(nb::module_& module) {
  bind_messages_on_loan(module);
  nb::class_<ExchangeObject>(
      module, "Exchange", nb::type_slots(explained_slots),
      "Messages between the hosts of an engine: one object for each host. A base class: derived "
      "ones "
      "define\nstart, finish and abort, and are called on any thread, one at a time.\n\n"
      "The hosts meet in rounds, in which every host sends a message to every host. All start and "
      "finish the\nsame rounds in the same order. A host that fails calls abort, so that the "
      "others "
      "do not wait for it, and\nall can go on; the others raise GivenUp from finish. "
      "docs/hosts.md has an example.\n\n"
      "host: the number of this one; hosts: how many there are.\n"
      "\n"
      ">>> embertable.Exchange.local().hosts\n"
      "1")
      .def("__init__", construct_exchange, nb::arg("host"), nb::arg("hosts"))
      .def_static(
          "local", [] { return exchange_object(make_local_exchange()); },
          "The exchange of a single host.\n\n"
          ">>> embertable.Exchange.local().host\n"
          "0")
      .def_static("threads", exchanges_of_threads, nb::arg("hosts"),
                  "The exchanges of hosts that are threads of this process, each with an engine of "
                  "its own. They wait for\neach other without a deadline.\n\n"
                  "hosts: how many. Raises ValueError.\n"
                  "\n"
                  ">>> [exchange.host for exchange in embertable.Exchange.threads(2)]\n"
                  "[0, 1]")
      .def_static(
          "mpi",
          [](nb::handle communicator, nb::handle deadline) {
            return exchange_object(mpi_exchange(communicator, deadline));
          },
          nb::arg("communicator") = nb::none(), nb::arg("deadline") = nb::none(),
          "The exchange of processes that run MPI, called by all ranks of the communicator, which "
          "is "
          "one of\nmpi4py's; None: MPI_COMM_WORLD. deadline: seconds without a message after which "
          "a host counts as\nmissing, 60 for None.\n\n"
          "Raises RuntimeError without MPI.\n"
          "\n"
          ">>> exchange = embertable.Exchange.mpi()  # doctest: +SKIP")
      .def("__repr__", described)
      .def_prop_ro("host", [](const ExchangeObject& self) { return self.host; })
      .def_prop_ro("hosts", [](const ExchangeObject& self) { return self.hosts; })
      .def(
          "start",
          [](ExchangeObject& self, nb::handle channel, const std::string& stage,
             nb::handle messages) {
            made_exchange(self, "start").start(integer32(channel, "channel"), stage, messages);
          },
          nb::arg("channel"), nb::arg("stage"), nb::arg("messages"),
          "Opens a round on a channel (0: of the running step, 1: ahead of it, 2: agreement): "
          "sends "
          "messages[h]\nto host h. They are buffers of bytes, which stay until the round is "
          "finished. stage names it in errors.\nA derived class gets memoryviews, which end with "
          "the round. It needs not check the order of calls. It may\nwait for the others to start "
          "the round too.\n\n"
          ">>> exchange = embertable.Exchange.local()\n"
          ">>> exchange.start(0, \"example\", [b\"mine\"])\n"
          ">>> [bytes(message) for message in exchange.finish(0)]\n"
          "[b'mine']")
      .def(
          "finish",
          [](ExchangeObject& self, nb::handle channel) {
            return made_exchange(self, "finish").finish(integer32(channel, "channel"));
          },
          nb::arg("channel"),
          "Closes the channel's round: gives what each host sent to this one. A derived class "
          "gives "
          "contiguous\nbuffers, whose bytes stay until the channel's next start, and anything for "
          "its own message; it raises\nGivenUp if a host gave up before it started this round, and "
          "has no open round then.\n\n"
          ">>> exchange = embertable.Exchange.local()\n"
          ">>> exchange.start(0, \"example\", [b\"mine\"])\n"
          ">>> len(exchange.finish(0))\n"
          "1")
      .def(
          "abort",
          [](ExchangeObject& self, const std::string& reason) {
            return made_exchange(self, "abort").abort(reason);
          },
          nb::arg("reason"),
          "Takes part in the round that the others wait in, or come to next, with a reason in "
          "place "
          "of messages.\nOpen rounds end. Gives the GivenUp that the others raise, which may be "
          "about a host before this one.\n\n"
          ">>> embertable.Exchange.local().abort(\"no more\").reason\n"
          "'no more'")
      .def(
          "agree", agree_on, nb::arg("error"), nb::arg("stage") = "agreement",
          "Compares errors: if a host passes one, all raise RuntimeError with the first host's.\n\n"
          "error: a text, empty for none; stage: names the round.\n"
          "\n"
          ">>> embertable.Exchange.local().agree(\"\")");
  module.def("find_mpi_launcher", launcher,
             "What started this process as one of several: (variable of the environment that shows "
             "it, number of\nprocesses or None), or None. Opens no library.\n\n"
             ">>> embertable.find_mpi_launcher()  # doctest: +SKIP");
}

}  // namespace embertable::python
