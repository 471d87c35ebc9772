#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/jobs/keys/vocabulary.h"
#include "base/hash.h"
#include "embertable/id_map.h"

namespace embertable::jobs {

using StdFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Writes values in this machine's representation and hashes them: file(a, b, ...), where a value
/// is a number, a vector of numbers, a text or keys. Until it is complete, the file is PATH.new,
/// which one writer at a time holds locked; what a killed process left there is written over.
/// Errors are kept until `finish`.
class BinaryWriter {
 public:
  /// `key` has kDigits digits, which the reader must give too.
  BinaryWriter(const std::string& path, const std::string& key);

  /// Removes a file that is not complete.
  ~BinaryWriter();
  BinaryWriter(const BinaryWriter&) = delete;
  BinaryWriter& operator=(const BinaryWriter&) = delete;

  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }

  /// Writes a number of elements, each of which is then written as a value of its own.
  template <class Element>
  void size(const std::vector<Element>& elements) {
    put(static_cast<std::uint64_t>(elements.size()));
  }

  /// Gives the file its name. Returns false, and changes nothing, if not everything reached the
  /// disk or another writer holds the file.
  bool finish();

 private:
  void bytes(std::span<const std::byte> bytes);
  template <class Number>
  void put(const Number& value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes(std::as_bytes(std::span(&value, 1)));
  }
  template <class Element>
  void put(const std::vector<Element>& values) {
    size(values);
    bytes(std::as_bytes(std::span(values)));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    bytes(std::as_bytes(std::span(text)));
  }
  void put(const IdMap& keys) { put(keys.to_bytes()); }
  void put(const Vocabulary& keys) { put(keys.id_map()); }

  const std::string path_;
  StdFile file_;  ///< null: another writer holds it, or it cannot be made
  Hasher hasher_;
  bool good_;
};

/// Reads back what BinaryWriter wrote, by the same calls. Whether the file is whole is known before
/// the first of them; missing values are read as zeros, or empty.
class BinaryReader {
 public:
  BinaryReader(const std::string& path, const std::string& key);

  /// True if the file has this key and is as it was written.
  bool whole() const noexcept { return whole_; }

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class Element>
  void size(std::vector<Element>& elements) {
    elements.resize(count(1));
  }

 private:
  bool has_digest();
  void bytes(std::span<std::byte> bytes);
  std::size_t count(std::size_t element_bytes);
  template <class Number>
  void get(Number& value) {
    static_assert(std::is_trivially_copyable_v<Number>);
    bytes(std::as_writable_bytes(std::span(&value, 1)));
  }
  template <class Element>
  void get(std::vector<Element>& values) {
    values.resize(count(sizeof(Element)));
    bytes(std::as_writable_bytes(std::span(values)));
  }
  void get(std::string& text) {
    text.resize(count(1));
    bytes(std::as_writable_bytes(std::span(text)));
  }
  void get(IdMap& keys) {
    std::string content;
    get(content);
    if (whole_) keys = IdMap::from_bytes(content);
  }
  void get(Vocabulary& keys) {
    std::string content;
    get(content);
    if (whole_) keys = Vocabulary(IdMap::from_bytes(content));
  }

  StdFile file_;
  std::uint64_t left_ = 0;  ///< bytes of the file that are not read yet
  bool whole_ = true;
};

}  // namespace embertable::jobs
