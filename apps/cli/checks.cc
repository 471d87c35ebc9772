#include "apps/cli/checks.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "embertable/errors.h"

namespace embertable::tools {
namespace {

template <class Number>
bool parses(const std::string& text, Number& number) {
  const char* const last = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), last, number);
  return parsed.ec == std::errc() && parsed.ptr == last;
}

bool is_whole(const std::string& text, std::int64_t& number) {
  return parses(text, number) && std::to_string(number) == text;
}

}  // namespace

CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& text) { return text.empty() ? "must not be empty" : ""; }, "");
}

CLI::Validator at_least(std::int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        std::int64_t number = 0;
        if (is_whole(text, number) && number >= least) return std::string();
        const bool is_too_large = text.size() >= 19 && text[0] != '0' &&
                                  text.find_first_not_of("0123456789") == std::string::npos;
        if (is_too_large)
          return fmt::format("must be a whole number from {} to {}, got '{}'", least, INT64_MAX,
                             text);
        return fmt::format("must be a whole number of at least {}, got '{}'", least, text);
      },
      "");
}

CLI::Validator between(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        std::int64_t number = 0;
        if (is_whole(text, number) && number >= least && number <= most) return std::string();
        return fmt::format("must be a whole number from {} to {}, got '{}'", least, most, text);
      },
      "");
}

CLI::Validator above_zero() {
  return CLI::Validator(
      [](const std::string& text) {
        double number = 0;
        if (parses(text, number) && number > 0) return std::string();
        return fmt::format("must be a number above 0, got '{}'", text);
      },
      "");
}

CLI::Validator key_and_value() {
  return CLI::Validator(
      [](const std::string& text) {
        const std::size_t equals = text.find('=');
        if (equals != std::string::npos && equals > 0) return std::string();
        return fmt::format("must be KEY=VALUE, got '{}'", text);
      },
      "");
}

CLI::Validator accepted_by(std::function<void(const std::string&)> parse) {
  return CLI::Validator(
      [parse = std::move(parse)](const std::string& text) -> std::string {
        try {
          parse(text);
        } catch (const ValueError& error) {
          return error.what();
        }
        return "";
      },
      "");
}

void refuse_existing(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, none)))
    throw IoError(fmt::format("'{}' exists; --force replaces it", path.string()));
}

}  // namespace embertable::tools
