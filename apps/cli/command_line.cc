#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/exit_codes.h"
#include "apps/convert/printable.h"
#include "base/did_you_mean.h"
#include "embertable/errors.h"
#include "embertable/version.h"

namespace embertable::tools {
namespace {

using jobs::Blanks;
using jobs::printable;

/// Returns what is wrong with the first word if it is meant as a command and is none, else "".
std::string refusal(CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return "";
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), words[0]) != names.end()) return "";
  return "the command " + must_be_one_of(names, words[0]);
}

/// Returns the words that "help" and "help COMMAND" are short for.
std::vector<std::string> without_help(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "help" || words.size() > 2) return words;
  std::vector<std::string> asking(words.begin() + 1, words.end());
  asking.emplace_back("--help");
  return asking;
}

/// Says which of the words after a command is none of its arguments.
std::string unexpected(const CLI::App& app) {
  const CLI::App& command = *app.get_subcommands().front();
  if (const std::vector<std::string> before = app.remaining(); !before.empty())
    return fmt::format("the options of {0} must stand behind {0}, got '{1}' before it",
                       command.get_name(), before.front());
  const std::string word = app.remaining(true).front();
  if (!word.starts_with('-'))
    return fmt::format("{} takes no argument '{}' besides those it has", command.get_name(), word);
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return fmt::format("{} has no option '{}'{}", command.get_name(), word,
                     did_you_mean(word, names));
}

/// Opens the standard streams that are closed: a file of the program would get their number, and
/// what is printed.
void open_standard_streams() {
  int descriptor = STDIN_FILENO;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor >= 0) ::close(descriptor);
}

int run(Invocation& invocation) {
  CLI::App app("Embertable: embedding tables, trained, stored and served", "embertable");
  app.set_version_flag("--version", fmt::format("embertable {}", kVersion));
  app.require_subcommand(0, 1);
  add_init(app);
  add_train(app, invocation);
  add_sweep(app, invocation);
  add_eval(app);
  add_predict(app);
  add_lookup(app);
  add_neighbors(app);
  add_inspect(app);
  add_verify(app, invocation);
  add_digest(app);
  add_export(app);
  add_import(app);
  add_compare(app);
  add_synth(app);
  add_selftest(app, invocation);
  add_doctor(app, invocation);
  add_completion(app);
  add_manual(app);
  const std::vector<std::string> words = without_help(invocation.words);
  if (const std::string wrong = refusal(app, words); !wrong.empty()) {
    print_message(wrong);
    return kMisused;
  }
  try {
    app.parse(std::vector(words.rbegin(), words.rend()));  // CLI11 takes the last first
  } catch (const CLI::ExtrasError& error) {
    if (app.get_subcommands().empty()) return app.exit(error) == 0 ? 0 : kMisused;
    print_message(unexpected(app));
    return kMisused;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kMisused;
  }
  if (app.get_subcommands().empty()) fmt::print("{}", app.help());
  return invocation.exit_code;
}

}  // namespace

void print_message(const std::string& text) noexcept {
  const std::string line = fmt::format("embertable: {}\n", printable(text, Blanks::kKeep));
  std::fputs(line.c_str(), stderr);
}

int run_command_line(Invocation& invocation) try {
  open_standard_streams();
  const int code = run(invocation);
  if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
    throw IoError("standard output: cannot write");
  return code;
} catch (const std::exception& error) {
  print_message(error.what());
  return kFailed;
}

}  // namespace embertable::tools
