#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "embertable/version.h"

namespace embertable {

/// Thrown if a documented rule about a value or a shape is broken. Python: ValueError.
class EMBERTABLE_API ValueError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Thrown for the wrong kind of thing: a list where a tuple belongs, text where numbers belong.
/// Python: TypeError.
class EMBERTABLE_API TypeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Position of an offending value in a batch. A field that does not apply is -1.
struct BatchPosition {
  std::string feature;         ///< path of the feature, "" for a bare leaf
  std::int64_t replica = -1;   ///< 0-based
  std::int64_t sample = -1;    ///< output row of the feature
  std::int64_t position = -1;  ///< index into the feature's values, indices or row splits
};

/// Thrown if the contents of a batch are wrong: an id, an index, a split. `where` says which one.
class EMBERTABLE_API DataError : public ValueError {
 public:
  DataError(const std::string& message, BatchPosition where)
      : ValueError(message), where_(std::move(where)) {}
  const BatchPosition& where() const noexcept { return where_; }

 private:
  BatchPosition where_;
};

/// Thrown if an index or id lies outside a variable. Python: IndexError.
class EMBERTABLE_API IndexError : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

/// Thrown for an unknown table, slot or key. Python: KeyError.
class EMBERTABLE_API KeyError : public std::out_of_range {
 public:
  using std::out_of_range::out_of_range;
};

/// Thrown for a call out of order or in the wrong mode, and for a wait that reached its deadline.
/// Python: RuntimeError.
class EMBERTABLE_API StateError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Thrown for what is documented, but not offered. Python: NotImplementedError.
class EMBERTABLE_API NotImplemented : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Thrown if a file, a disk or a peer failed. Names path or rank, operation and cause. Python:
/// OSError.
class EMBERTABLE_API IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown if there is no checkpoint where one is opened. Python: FileNotFoundError.
class EMBERTABLE_API NotFound : public IoError {
 public:
  using IoError::IoError;
};

/// Thrown if stored data fails its checksum or contradicts itself. Python:
/// embertable.DataLossError.
class EMBERTABLE_API DataLoss : public IoError {
 public:
  using IoError::IoError;
};

}  // namespace embertable
