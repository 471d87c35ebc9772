// Lets C++ call an exchange that is written in Python.
#include "python/src/exchange_adapter.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "exchange/open_rounds.h"
#include "python/src/arguments.h"
#include "python/src/arrays.h"
#include "python/src/callback.h"
#include "python/src/errors.h"

namespace embertable::python {
namespace {

/// Lends a message to Python until its round ends, and counts who reads it.
struct LentMessage {
  ByteSpan bytes;
  std::int64_t readers = 0;
  bool over = false;
};

int lend_message(PyObject* self, Py_buffer* view, int flags) {
  LentMessage& message = *nb::inst_ptr<LentMessage>(self);
  if (message.over) {
    PyErr_SetString(PyExc_BufferError, "the message's round is over");
    return -1;
  }
  auto* bytes = const_cast<std::byte*>(message.bytes.data());
  const auto size = static_cast<Py_ssize_t>(message.bytes.size());
  const int failed = PyBuffer_FillInfo(view, self, bytes, size, /*readonly=*/1, flags);
  if (failed == 0) ++message.readers;
  return failed;
}

void take_message_back(PyObject* self, Py_buffer* /*view*/) {
  --nb::inst_ptr<LentMessage>(self)->readers;
}

PyType_Slot lent_message_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(lend_message)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(take_message_back)},
    {0, nullptr}};

/// What the round of one channel has of Python. Used with the GIL.
class PythonRound {
 public:
  /// Returns the messages as a tuple of memoryviews, and forgets what the round before received.
  nb::tuple lend(std::span<const ByteSpan> send) {
    received_.clear();
    nb::list views;
    for (const ByteSpan bytes : send) {
      lent_.push_back(nb::cast(LentMessage{bytes}));
      nb::object view = nb::steal(PyMemoryView_FromObject(lent_.back().ptr()));
      if (!view.is_valid()) throw nb::python_error();
      views_.push_back(view);
      views.append(view);
    }
    return nb::tuple(views);
  }

  /// Ends the loan. Returns false if Python still reads a message.
  bool take_back() {
    for (const nb::object& view : views_)
      if (!nb::steal(PyObject_CallMethod(view.ptr(), "release", nullptr)).is_valid()) PyErr_Clear();
    bool all = true;
    for (const nb::object& one : lent_) {
      auto& message = *nb::inst_ptr<LentMessage>(one);
      message.over = true;
      all = all && message.readers == 0;
    }
    views_.clear();
    lent_.clear();
    return all;
  }

  /// Returns the message of this host to itself.
  ByteSpan own(std::int32_t host) const { return nb::inst_ptr<LentMessage>(lent_[host])->bytes; }

  /// Keeps what a host sent until the next round. Copies it if it is not aligned.
  ByteSpan keep(nb::handle message, std::int32_t from) {
    std::optional<Buffer> buffer = Buffer::of(message, PyBUF_SIMPLE);
    if (!buffer)
      throw TypeError("exchange: finish: the message of host " + std::to_string(from) +
                      " must be contiguous bytes, got " + type_text(message));
    const ByteSpan bytes(static_cast<const std::byte*>(buffer->view().buf),
                         static_cast<std::size_t>(buffer->view().len));
    if (bytes.empty()) return {};
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0) {
      received_.push_back(std::move(*buffer));
      return bytes;
    }
    const std::span<std::byte> copy = aligned_.take<std::byte>(std::ssize(bytes));
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    return copy;
  }

  void forget_copies() { aligned_.reset(); }

 private:
  std::vector<nb::object> lent_;   ///< LentMessage of each host
  std::vector<nb::object> views_;  ///< memoryview of each
  std::vector<Buffer> received_;
  Arena aligned_;
};

class Adapter final : public PythonExchange {
 public:
  Adapter(nb::object object, std::int32_t host, std::int32_t hosts)
      : host_(host),
        hosts_(hosts),
        open_(hosts),
        rounds_(std::make_unique<Rounds>()),
        object_(std::make_shared<Callback>(std::move(object))) {}
  ~Adapter() override {
    if (!Py_IsInitialized()) {
      rounds_.release();  // NOLINT: nobody is left to free what it holds
      return;
    }
    const WithGil gil;
    for (PythonRound& round : *rounds_) round.take_back();
    rounds_.reset();
  }
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  std::int32_t host() const noexcept override { return host_; }
  std::int32_t hosts() const noexcept override { return hosts_; }
  const CallbackPtr& object() const noexcept override { return object_; }

  void start(Channel channel, const Stage& stage, std::span<const ByteSpan> send) override {
    open_.start(channel, stage, send.size());
    with_gil([&] {
      call("start", number(channel), readable(to_string(stage)), of(channel).lend(send));
    });
  }

  void finish(Channel channel, std::span<ByteSpan> received) override {
    open_.finish(channel, received.size());
    with_gil([&] {
      take(call("finish", number(channel)), of(channel), received);
      if (!of(channel).take_back())
        throw StateError("exchange: finish: " + to_string(open_.stage(channel)) +
                         " were sent, and Python still has a view of them");
    });
    open_.close(channel);
  }

  bool is_open(Channel channel) const noexcept override { return open_.is_open(channel); }

  GivenUp abort(std::string_view reason) override {
    return with_gil([&] {
      const Closing closing{*this};
      return given_up_of(call("abort", readable(reason)), "exchange: what abort returns");
    });
  }

 private:
  using Rounds = std::array<PythonRound, kNumChannels>;

  /// Ends all rounds.
  struct Closing {
    Adapter& exchange;
    ~Closing() {
      exchange.open_.restart();
      for (PythonRound& round : *exchange.rounds_) round.take_back();
    }
  };

  static std::int32_t number(Channel channel) noexcept {
    return static_cast<std::int32_t>(channel);
  }
  PythonRound& of(Channel channel) const { return (*rounds_)[static_cast<std::size_t>(channel)]; }

  /// Throws GivenUp if that is what the method raises, and has no open round then.
  template <class... Args>
  nb::object call(const char* method, const Args&... args) {
    try {
      return object_->method(method, args...);
    } catch (const RaisedError& error) {
      if (!nb::isinstance(error.value(), given_up_type())) throw;
      const Closing closing{*this};
      throw given_up_of(error.value(), "exchange: what is raised");
    }
  }

  void take(nb::handle messages, PythonRound& round, std::span<ByteSpan> received) const {
    if (!PySequence_Check(messages.ptr()))
      throw TypeError("exchange: finish must return a list, got " + type_text(messages));
    if (nb::len(messages) != received.size())
      throw ValueError("exchange: finish must return one message of each of " +
                       std::to_string(hosts_) + " hosts, got " + std::to_string(nb::len(messages)));
    round.forget_copies();
    for (std::int32_t from = 0; from < hosts_; ++from)
      received[from] =
          from == host_ ? round.own(from) : round.keep(nb::object(messages[from]), from);
  }

  std::int32_t host_, hosts_;
  OpenRounds open_;
  std::unique_ptr<Rounds> rounds_;
  CallbackPtr object_;
};

}  // namespace

std::shared_ptr<PythonExchange> make_python_exchange(nb::object object, std::int32_t host,
                                                     std::int32_t hosts) {
  return std::make_shared<Adapter>(std::move(object), host, hosts);
}

void bind_messages_on_loan(nb::module_& module) {
  nb::class_<LentMessage>(module, "_LentMessage", nb::type_slots(lent_message_slots));
}

}  // namespace embertable::python
