#pragma once

#include <cstdint>
#include <memory>

#include "embertable/embedding.h"
#include "embertable/export.h"
#include "embertable/nested.h"

namespace embertable {

namespace serving {
class Lookup;
}  // namespace serving

/// The activations of one lookup, packed as its inputs were. Owns its memory, which the next lookup
/// into it reuses: once it has held as much, a lookup allocates nothing. A thread keeps the memory
/// of the last output that it destroyed, up to 64 KiB of activations, for its next one. Moves. One
/// lookup at a time; reading is free for all threads.
class EMBERTABLE_API LookupOutput {
 public:
  LookupOutput() noexcept;
  LookupOutput(LookupOutput&&) noexcept;
  LookupOutput& operator=(LookupOutput&&) noexcept;
  ~LookupOutput();

  /// Structure of the inputs; a single leaf before the first lookup.
  const Structure& structure() const noexcept;

  /// Number of leaves of the inputs; 0 before the first lookup, and after one that threw.
  std::int64_t size() const noexcept;

  /// Returns the activation of one input. Requires: 0 <= leaf < size(), in flatten order. The
  /// values start on a cache line and are valid until the next lookup into this output.
  const Activation& operator()(std::int64_t leaf) const noexcept;

  Nested<Activation> nested() const;

 private:
  friend class serving::Lookup;
  std::unique_ptr<serving::Lookup> lookup_;  ///< null before the first lookup
};

}  // namespace embertable
