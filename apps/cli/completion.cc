#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/command_texts.h"
#include "apps/cli/commands.h"

namespace embertable::tools {
namespace {

using Commands = std::vector<CommandText>;

/// Returns the text with each character of `special` behind a mark.
std::string escaped(const std::string& text, std::string_view special, const char* mark = "\\") {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += mark;
    result += c;
  }
  return result;
}

/// Returns the text between single quotes, for sh and zsh.
std::string in_quotes(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

std::string bash(const Commands& commands) {
  std::vector<std::string> names;
  std::string values, words;
  for (const CommandText& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> options, choices;
    for (const ArgumentText& option : command.options) {
      options.push_back(option.name);
      if (!option.choices.empty()) {
        values += fmt::format("    '{} {}') words='{}' ;;\n", command.name, option.name,
                              fmt::join(option.choices, " "));
      } else if (option.takes_value) {
        values += fmt::format("    '{} {}') ;;\n", command.name, option.name);
      }
    }
    for (const ArgumentText& one : command.positionals)
      choices.insert(choices.end(), one.choices.begin(), one.choices.end());
    words += fmt::format("    '{} -'*) words='{}' ;;\n", command.name, fmt::join(options, " "));
    if (!choices.empty())
      words += fmt::format("    '{} '*) words='{}' ;;\n", command.name, fmt::join(choices, " "));
  }
  return fmt::format(
      R"sh(# For ~/.bashrc: eval "$(embertable completion bash)"
_embertable() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    words='{} --help --version'
  else case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD-1]}}" in
{}    *) case "${{COMP_WORDS[1]}} $word" in
{}    esac ;;
  esac; fi
  [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _embertable embertable
)sh",
      fmt::join(names, " "), values, words);
}

std::string zsh(const Commands& commands) {
  const auto plain = [](const std::string& text) { return escaped(text, "[]:\\"); };
  std::string names, cases;
  for (const CommandText& command : commands) {
    names += "    " + in_quotes(plain(command.name) + ":" + plain(command.description)) + "\n";
    cases += fmt::format("    {}) _arguments", command.name);
    const auto action = [](const ArgumentText& one) {
      return one.choices.empty() ? std::string("_files")
                                 : fmt::format("({})", fmt::join(one.choices, " "));
    };
    for (const ArgumentText& option : command.options) {
      std::string spec =
          (option.repeats ? "*" : "") + option.name + "[" + plain(option.description) + "]";
      if (option.takes_value) spec += ":value:" + action(option);
      cases += " \\\n      " + in_quotes(spec);
    }
    for (const ArgumentText& one : command.positionals)
      cases += " \\\n      " +
               in_quotes((one.repeats ? "*:" : ":") + plain(one.name) + ":" + action(one));
    cases += " ;;\n";
  }
  return fmt::format(
      R"sh(#compdef embertable
# For a file _embertable in a folder of $fpath, or for ~/.zshrc: eval "$(embertable completion zsh)"
_embertable() {{
  local -a commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
if [ "$funcstack[1]" = _embertable ]; then _embertable "$@"; else compdef _embertable embertable; fi
)sh",
      names, cases);
}

std::string fish(const Commands& commands) {
  const auto plain = [](const std::string& text) { return "'" + escaped(text, "'\\") + "'"; };
  std::string lines =
      "# For ~/.config/fish/completions/embertable.fish\n"
      "complete -c embertable -n __fish_use_subcommand -f\n";
  for (const CommandText& command : commands) {
    lines += fmt::format("complete -c embertable -n __fish_use_subcommand -a {} -d {}\n",
                         command.name, plain(command.description));
    const std::string within =
        fmt::format("complete -c embertable -n '__fish_seen_subcommand_from {}'", command.name);
    for (const ArgumentText& option : command.options) {
      lines +=
          fmt::format("{} -l {} -d {}", within, option.name.substr(2), plain(option.description));
      if (!option.choices.empty()) {
        lines += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      } else if (option.takes_value) {
        lines += " -r";
      }
      lines += "\n";
    }
    for (const ArgumentText& one : command.positionals)
      if (!one.choices.empty())
        lines += fmt::format("{} -f -a '{}'\n", within, fmt::join(one.choices, " "));
  }
  return lines;
}

}  // namespace

void add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "completion", "Print a script by which a shell completes the words of this command");
  command->add_option("SHELL", *shell, "the shell that reads the script")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app] {
    const Commands commands = command_texts(app);
    fmt::print("{}", *shell == "bash"  ? bash(commands)
                     : *shell == "zsh" ? zsh(commands)
                                       : fish(commands));
  });
}

}  // namespace embertable::tools
