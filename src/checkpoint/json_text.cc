#include "checkpoint/json_text.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "embertable/errors.h"

namespace embertable::checkpoint {

namespace {

/// Walks a text without keeping its values, and says what is wrong with it.
class JsonCheck final : public Json::json_sax_t {
 public:
  /// Why the text is refused; "" if it is not.
  std::string error;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return enter();
  }
  bool key(string_t& key) override {
    if (keys_.back().insert(key).second) return true;
    error = "key '" + key + "' stands twice in one object";
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& thrown) override {
    error = thrown.what();
    return false;
  }

 private:
  bool enter() {
    if (++depth_ <= kMaxJsonDepth) return true;
    error = "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels";
    return false;
  }

  std::vector<std::set<std::string>> keys_;  ///< keys of each open object
  int depth_ = 0;
};

}  // namespace

// A parser with a callback would look through all members of the outer object or array after each
// inner object.
Json parse_json(std::string_view text, const std::filesystem::path& path) {
  JsonCheck check;
  if (!Json::sax_parse(text.begin(), text.end(), &check))
    throw DataLoss(path.string() + ": cannot parse: " + check.error);
  return Json::parse(text.begin(), text.end());
}

JsonField JsonField::operator[](const char* key) const {
  if (!value_->is_object()) refuse("must be an object");
  const auto found = value_->find(key);
  if (found == value_->end()) refuse(std::string("lacks '") + key + "'");
  return {*found, *path_, where_.empty() ? key : where_ + "." + key};
}

bool JsonField::has(const char* key) const {
  if (!value_->is_object()) refuse("must be an object");
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

std::size_t JsonField::size() const {
  if (!value_->is_array()) refuse("must be an array");
  return value_->size();
}

JsonField JsonField::at(std::size_t index) const {
  return {(*value_)[index], *path_, where_ + "[" + std::to_string(index) + "]"};
}

void JsonField::each(
    FunctionRef<void(const std::string& name, const JsonField& value)> visit) const {
  if (!value_->is_object()) refuse("must be an object");
  for (const auto& [name, value] : value_->items())
    visit(name, JsonField(value, *path_, where_.empty() ? name : where_ + "." + name));
}

std::string JsonField::text() const {
  if (!value_->is_string()) refuse("must be a text");
  return value_->get<std::string>();
}

bool JsonField::boolean() const {
  if (!value_->is_boolean()) refuse("must be true or false");
  return value_->get<bool>();
}

std::int64_t JsonField::integer(std::int64_t low, std::int64_t high) const {
  const bool fits = value_->is_number_unsigned()
                        ? value_->get<std::uint64_t>() <=
                              static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                        : value_->is_number_integer();
  if (!fits || value_->get<std::int64_t>() < low || value_->get<std::int64_t>() > high)
    refuse("must be an integer in " + std::to_string(low) + ".." + std::to_string(high));
  return value_->get<std::int64_t>();
}

std::uint64_t JsonField::unsigned_integer() const {
  if (!value_->is_number_unsigned()) refuse("must be an integer in 0..2^64-1");
  return value_->get<std::uint64_t>();
}

double JsonField::number() const {
  if (value_->is_number()) return value_->get<double>();
  if (*value_ == "inf") return std::numeric_limits<double>::infinity();
  if (*value_ == "-inf") return -std::numeric_limits<double>::infinity();
  if (*value_ == "nan") return std::numeric_limits<double>::quiet_NaN();
  refuse("must be a number");
}

std::string JsonField::hex(std::size_t digits) const {
  const std::string found = text();
  if (found.size() != digits || found.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse("must be " + std::to_string(digits) + " lowercase hexadecimal digits");
  return found;
}

void JsonField::refuse(const std::string& rule) const {
  throw DataLoss(path_->string() + ": " + (where_.empty() ? "the top level" : where_) + " " + rule);
}

Json number_to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace embertable::checkpoint
