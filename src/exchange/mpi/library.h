#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "embertable/exchange.h"

namespace embertable::mpi {

/// A request that has ended.
struct Ended {
  std::int32_t request;  ///< the number that `send` or `receive` returned
  std::string error;     ///< MPI's text, "" if it went well
};

/// What is to be known of a rank.
struct Found {
  std::int32_t rank;
  std::string error;  ///< MPI's text, if the rank cannot be reached; "": it has sent a message
};

/// A communicator of MPI, in whatever ABI. Its destructor frees nothing: a communicator with open
/// requests must stay. Calls throw IoError naming MPI's function and its text.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t size() const = 0;

  /// Returns a number that no other communicator of this process has.
  virtual std::uintptr_t identity() const noexcept = 0;

  /// Makes sure that so many requests more need no memory. Returns the number that all requests are
  /// below then.
  virtual std::size_t reserve(std::size_t requests) = 0;

  /// Begins to send or to receive at most INT_MAX bytes. Returns the request, whose number is used
  /// again when it has ended. The memory is borrowed until then. One that MPI refuses has ended at
  /// once: `test` lists it with the error, as it does others to a rank that is lost.
  virtual std::int32_t send(ByteSpan bytes, std::int32_t to, std::int32_t tag) = 0;
  virtual std::int32_t receive(std::span<std::byte> bytes, std::int32_t from, std::int32_t tag) = 0;

  /// Lets MPI work. Lists the requests that have ended meanwhile.
  virtual void test(std::vector<Ended>& ended) = 0;

  /// Looks for a message with this tag that nobody receives yet; if there is none, for a rank of
  /// which MPI reports that it is lost. Not every MPI does.
  virtual std::optional<Found> probe(std::int32_t tag) = 0;

  /// Makes a communicator for the same ranks, whose errors are returned. Collective.
  virtual std::unique_ptr<Communicator> duplicate() const = 0;

  /// Requires: no request is open. Nothing else may be called afterwards.
  virtual void free() noexcept = 0;
};

/// An MPI library that is loaded. Calls of all libraries and communicators exclude each other.
class Library {
 public:
  virtual ~Library() = default;

  /// Returns the first line of what the library says of itself.
  virtual std::string version() const = 0;
  virtual bool initialized() const = 0;
  virtual bool finalized() const = 0;

  /// Initialises MPI, with errors of the world returned.
  virtual void initialize() = 0;
  virtual void finalize() noexcept = 0;

  /// Returns whether threads may call one at a time. Requires: MPI is initialised.
  virtual bool serializes_threads() const = 0;

  virtual std::unique_ptr<Communicator> world() const = 0;

  /// Returns the communicator with this number in Fortran; null if there is none.
  virtual std::unique_ptr<Communicator> from_fortran(std::int32_t number) const = 0;
};

/// Functions and objects of a loaded library, by name.
class Symbols {
 public:
  /// `handle` is that of dlopen, or RTLD_DEFAULT. `name` is the library's, for errors.
  Symbols(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  const std::string& name() const noexcept { return name_; }

  /// Returns null if there is none.
  void* find(const char* symbol) const noexcept;

  /// Throws IoError naming library and symbol if there is none.
  void* address(const char* symbol) const;

  /// Returns the object that the library itself uses: a program that is linked with the library may
  /// have a copy of it. Throws as `address`.
  void* object(const char* symbol) const;

  template <class Function>
  void get(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void* handle_;
  std::string name_;
};

// One for each ABI. They throw IoError if the library lacks a function.
std::unique_ptr<Library> open_openmpi(const Symbols& symbols);
std::unique_ptr<Library> open_mpich(const Symbols& symbols);
std::unique_ptr<Library> open_standard(const Symbols& symbols);

}  // namespace embertable::mpi
