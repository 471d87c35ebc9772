#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "apps/jobs/spec/change.h"

namespace embertable::jobs {
/// Ends the parsing of a text that breaks what toml++ takes for granted. Throws toml::parse_error.
[[noreturn]] void stop_parsing();
}  // namespace embertable::jobs

// There are texts, such as "[=", that fail assertions of toml++ and are undefined behaviour where
// it has none. They must be errors in every build.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(holds) ((holds) ? static_cast<void>(0) : ::embertable::jobs::stop_parsing())
#define TOML_HEADER_ONLY 0
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")
#include <cassert>  // assert() is again as NDEBUG says

namespace embertable::jobs {

/// A TOML text with changes applied to it, which records where each of its values comes from and
/// which were read.
class TomlDocument {
 public:
  /// Maximum bytes of a text or a change. The parts of a key and the values in each other have a
  /// maximum too, because parsing and freeing take stack for each.
  static constexpr std::size_t kMaxBytes = 256 << 10;
  static constexpr std::int64_t kMaxDepth = 32;

  /// Throws ValueError naming file and line if the text is not TOML or is beyond a maximum, or
  /// naming the source of the change that does not fit.
  TomlDocument(const std::string& text, std::string path, const std::vector<Change>& changes);

  const toml::table& root() const noexcept { return root_; }

  /// Lets `fill` change the text; it returns whether it did. What was read before counts as not
  /// read, and sections must be made anew. `taken`: dotted keys that `fill` takes out, which errors
  /// may still name as the nearest.
  void complete(bool (*fill)(toml::table&), std::vector<std::string> taken);

  /// True if the document says more than its text, by changes or by `complete`.
  bool changed() const noexcept { return completed_ || !changes_.empty(); }

  /// Returns the document with every default that its sections have returned so far. A default
  /// that is an empty text is the same as none, and left out.
  const toml::table& with_defaults() const noexcept { return with_defaults_; }

  /// Every value that its sections have returned so far, defaults included: by dotted key, as text.
  const std::map<std::string, std::string>& settings() const noexcept { return settings_; }

  /// Throws ValueError: "FILE:LINE: RULE", or "SOURCE OF A CHANGE: RULE".
  [[noreturn]] void refuse(std::string_view key_path, toml::source_region where,
                           const std::string& rule) const;

 private:
  friend class TomlSection;
  void change(const Change& change);

  template <class T>
  void note(std::string_view section, std::string_view key, const T& value);
  std::string path_;
  toml::table root_;
  toml::table with_defaults_;
  bool completed_ = false;
  std::vector<std::string> taken_;
  std::vector<std::pair<std::string, std::string>> changes_;  ///< dotted key, source
  std::map<std::string, std::string> settings_;
};

/// One table of a document. Every key that is read is known from then on; `finish` refuses the
/// others. All calls throw ValueError naming file, line, key, rule and received value.
class TomlSection {
 public:
  explicit TomlSection(TomlDocument& document) : document_(&document), table_(&document.root()) {}

  const std::string& path() const noexcept { return path_; }
  bool has(std::string_view key);

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string fallback);
  std::int64_t integer(std::string_view key, std::int64_t lowest, std::int64_t highest);
  std::int64_t integer(std::string_view key, std::int64_t lowest, std::int64_t highest,
                       std::int64_t fallback);
  double number(std::string_view key);
  double number(std::string_view key, double fallback);
  bool flag(std::string_view key);
  bool flag(std::string_view key, bool fallback);

  /// Returns a number, a flag or a text.
  std::variant<double, bool, std::string> value(std::string_view key);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);
  std::vector<double> numbers(std::string_view key);

  /// Returns the name of a column, or its number.
  std::string column(std::string_view key);

  /// Returns columns, each as `column` does, or ranges of them as they are written ("3-5").
  std::vector<std::string> columns(std::string_view key);
  std::vector<std::string> columns(std::string_view key, std::vector<std::string> fallback);

  /// Returns a text, or the texts of a list that is not empty.
  std::vector<std::string> one_or_more(std::string_view key);

  /// Returns the number as text.
  std::string text_or_integer(std::string_view key, std::string fallback);

  /// Returns a text that is one of `names`; the error for another text says which is nearest.
  std::string choice(std::string_view key, const std::vector<std::string>& names,
                     std::optional<std::string> fallback = {});

  /// Returns a table; an absent one is refused, or empty if `optional`.
  TomlSection section(std::string_view key, bool optional = false);

  /// Returns the keys of this table, in the order of the file.
  std::vector<std::string> keys() const;

  /// Returns the keys that were not read, which are known from then on.
  std::vector<std::string> take_rest();

  void finish() const;

  /// Refuses the value of a key: "PATH.KEY RULE".
  [[noreturn]] void refuse(std::string_view key, const std::string& rule) const;

  /// Refuses a key that other keys make meaningless: "PATH.KEY must be left out WHERE".
  void refuse_given(std::string_view key, const std::string& where);

  /// "PATH RULE".
  [[noreturn]] void refuse_section(const std::string& rule) const;

  /// "PATH.KEY must be EXPECTED, got VALUE".
  [[noreturn]] void refuse_value(std::string_view key, std::string_view expected) const;

 private:
  TomlSection(TomlDocument& document, const toml::table& table, std::string path)
      : document_(&document), table_(&table), path_(std::move(path)) {}
  const toml::node* find(std::string_view key);
  const toml::node& require(std::string_view key, std::string_view expected);
  [[noreturn]] void refuse_missing(std::string_view key, std::string_view expected) const;
  [[noreturn]] void refuse_key(std::string_view key, const std::string& hint) const;
  std::string path_of(std::string_view key) const;

  /// Returns the value, and records it in the document as this key's.
  template <class T>
  T noted(std::string_view key, T value);

  TomlDocument* document_;
  const toml::table* table_;
  std::string path_;
  std::vector<std::string> known_;
};

}  // namespace embertable::jobs
