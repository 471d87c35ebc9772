#include "exchange/mpi/pipe_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <barrier>
#include <cerrno>
#include <thread>
#include <vector>

namespace embertable::mpi {
namespace {

/// Writes to a pipe that nobody reads; returns the error.
int write_to_broken_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  close(ends[0]);
  errno = 0;
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  const int error = errno;
  close(ends[1]);
  return error;
}

bool is_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

bool is_blocked() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGPIPE) == 1;
}

TEST(PipeSignals, ABrokenPipeEndsNoProcess) {
  ASSERT_FALSE(is_blocked());
  {
    const PipeSignalsHeld outer;
    {
      const PipeSignalsHeld inner;
      EXPECT_EQ(write_to_broken_pipe(), EPIPE);
      EXPECT_TRUE(is_pending());
    }
    EXPECT_FALSE(is_pending());
    EXPECT_EQ(write_to_broken_pipe(), EPIPE);
  }
  EXPECT_FALSE(is_pending());
  EXPECT_FALSE(is_blocked());
}

TEST(PipeSignals, OneOfTheCallerStaysPending) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, &before);
  write_to_broken_pipe();
  {
    const PipeSignalsHeld held;
    write_to_broken_pipe();
  }
  EXPECT_TRUE(is_pending());
  int taken = 0;
  sigwait(&set, &taken);
  EXPECT_EQ(taken, SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A signal of the whole process is pending for every thread, and one of them takes it: the others
// must not wait for another.
TEST(PipeSignals, ThatAnotherThreadTakesAreNotWaitedFor) {
  sigset_t set, before;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, &before);  // for the threads made below, too
  constexpr int kThreads = 4, kRounds = 200;
  std::barrier rounds(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; ++round) {
        rounds.arrive_and_wait();
        {
          const PipeSignalsHeld held;
          rounds.arrive_and_wait();
          if (t == 0) kill(getpid(), SIGPIPE);
          rounds.arrive_and_wait();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(is_pending());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace embertable::mpi
