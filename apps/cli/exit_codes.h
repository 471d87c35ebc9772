#pragma once

namespace embertable::tools {

// Exit codes of the command. After a signal the code is 128 plus its number: see interrupt.h.
constexpr int kFailed = 1;     ///< a command throws, or what it checks is not as it should be
constexpr int kMisused = 2;    ///< the command line is wrong
constexpr int kTryAgain = 75;  ///< EX_TEMPFAIL, by which launchers know that a restart may help

struct ExitCodeText {
  const char* code;
  const char* meaning;
};

/// What the manual page prints; docs/command_line.md has the same rows.
inline constexpr ExitCodeText kExitCodes[] = {
    {"0", "done"},
    {"1",
     "an error, said on stderr; verify: a checksum does not match; selftest: a result deviates"},
    {"2", "the command line is wrong"},
    {"75", "another process of the run is lost: starting it again with --resume may help"},
    {"130, 143", "interrupted by SIGINT, by SIGTERM"},
};

}  // namespace embertable::tools
