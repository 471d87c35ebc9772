#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "apps/cli/command_texts.h"
#include "apps/cli/commands.h"
#include "apps/cli/exit_codes.h"
#include "embertable/version.h"

namespace embertable::tools {
namespace {

constexpr const char* kEnvironment[][2] = {
    {"EMBERTABLE_SIMD",
     "the SIMD level that kernels use, scalar, avx2 or avx512, instead of the "
     "highest that the CPU has. Results are the same"},
    {"EMBERTABLE_MPI_LIBRARY",
     "the MPI library that connects processes, if not that of the "
     "launcher"},
};

/// Returns the text as a line of a manual page shows it.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      const bool first = result.empty() || result.back() == '\n';
      if (first && (c == '.' || c == '\'')) result += "\\&";
      result += c;
    }
  }
  return result;
}

std::string synopsis(const CommandText& command) {
  std::string text = ".B embertable " + roff(command.name) + "\n";
  for (const ArgumentText& one : command.positionals) {
    const std::string name = roff(one.name) + (one.repeats ? " ..." : "");
    text += ".I " + (one.required ? name : "[" + name + "]") + "\n";
  }
  return text + (command.options.empty() ? "" : "[options]\n");
}

std::string item(const ArgumentText& one) {
  std::string head = roff(one.name);
  if (one.takes_value && one.name.starts_with("-")) {
    head += one.choices.empty()
                ? " VALUE"
                : fmt::format(" {}", roff(fmt::format("{}", fmt::join(one.choices, "|"))));
  }
  std::string text = roff(one.description);
  if (!one.fallback.empty()) text += fmt::format(" [{}]", roff(one.fallback));
  return fmt::format(".TP\n.B {}\n{}\n", head, text);
}

std::string page(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH EMBERTABLE 1 \"\" \"embertable {}\" \"User Commands\"\n.SH NAME\nembertable \\- trains, "
      "stores and serves embedding tables\n.SH SYNOPSIS\n",
      kVersion);
  const std::vector<CommandText> commands = command_texts(app);
  for (const CommandText& command : commands) text += synopsis(command) + ".br\n";
  text += ".SH COMMANDS\n";
  for (const CommandText& command : commands) {
    text += fmt::format(".SS {}\n{}\n", roff(command.name), roff(command.description));
    for (const ArgumentText& one : command.positionals) text += item(one);
    for (const ArgumentText& one : command.options) text += item(one);
  }
  text += ".SH EXIT STATUS\n";
  for (const ExitCodeText& one : kExitCodes)
    text += fmt::format(".TP\n.B {}\n{}\n", one.code, roff(one.meaning));
  text += ".SH ENVIRONMENT\n";
  for (const auto& [name, meaning] : kEnvironment)
    text += fmt::format(".TP\n.B {}\n{}\n", name, roff(meaning));
  return text;
}

}  // namespace

void add_manual(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("manual", "Print the manual page: embertable manual | man -l -");
  command->callback([&app] { fmt::print("{}", page(app)); });
}

}  // namespace embertable::tools
