#include "apps/cli/command_texts.h"

namespace embertable::tools {
namespace {

/// Returns the words of a type such as "TEXT:{mpi,torch}", none of another one.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t begin = type.find('{'), end = type.rfind('}');
  std::vector<std::string> words;
  if (begin == std::string::npos || end == std::string::npos) return words;
  words.emplace_back();
  for (const char c : type.substr(begin + 1, end - begin - 1)) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

ArgumentText text_of(const CLI::Option& option) {
  ArgumentText text;
  text.name = option.get_positional() ? option.get_name(true) : "--" + option.get_lnames().front();
  text.description = option.get_description();
  text.takes_value = option.get_items_expected_max() > 0;
  if (text.takes_value) {
    text.choices = choices_of(option.get_type_name());
    text.fallback = option.get_default_str();
  }
  text.repeats = option.get_items_expected_max() > 1;
  text.required = option.get_required();
  return text;
}

}  // namespace

std::vector<CommandText> command_texts(const CLI::App& app) {
  std::vector<CommandText> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    CommandText text{command->get_name(), command->get_description(), {}, {}};
    for (const CLI::Option* option : command->get_options({})) {
      if (option->get_positional()) {
        text.positionals.push_back(text_of(*option));
      } else if (!option->get_lnames().empty()) {
        text.options.push_back(text_of(*option));
      }
    }
    commands.push_back(std::move(text));
  }
  return commands;
}

}  // namespace embertable::tools
