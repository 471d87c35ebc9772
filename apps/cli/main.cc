#include "apps/cli/command_line.h"

int main(int argc, char** argv) {
  embertable::tools::Invocation invocation{.program = {argv[0]}, .words = {argv + 1, argv + argc}};
  return embertable::tools::run_command_line(invocation);
}
