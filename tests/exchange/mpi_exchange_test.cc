// The exchange of processes: each process of a launcher runs these tests, and is one host.
#include "exchange/mpi/mpi_exchange.h"

#include <gtest/gtest.h>

#include "testing/exchange/contract.h"
#include "testing/refusal.h"

namespace embertable {
namespace exchange_contract {

std::vector<Kind> kinds() {
  const auto with_segments = [](std::int64_t bytes) {
    return [bytes] {
      Hosts one;
      one.push_back(mpi::make_exchange({}, bytes));
      return one;
    };
  };
  return {{"mpi", with_segments(mpi::kSegmentBytes)}, {"segments1024", with_segments(1024)}};
}

}  // namespace exchange_contract

namespace {

TEST(MpiExchange, RefusesACommunicatorThatAnotherExchangeUses) {
  const auto first = make_mpi_exchange();
  EXPECT_EQ(refusal<StateError>([] { make_mpi_exchange(); }),
            "mpi exchange: another exchange of this process uses this communicator");
  first->agree("");
}

TEST(MpiExchange, CanBeMadeAgainAndAgain) {
  for (int i = 0; i < 50; ++i) make_mpi_exchange()->agree("");
}

TEST(MpiExchange, RefusesADeadlineThatIsNone) {
  EXPECT_EQ(refusal<ValueError>([] { make_mpi_exchange({.deadline_seconds = 0}); }),
            "mpi exchange: deadline_seconds must be > 0 and at most 1e9, got 0.000000");
}

TEST(MpiExchange, RefusesAnotherVersionOnEveryRank) {
  const std::int32_t me = make_mpi_exchange()->host();
  const auto version_of = [](std::int32_t rank) { return rank == 1 ? "0.0.9" : kVersion; };
  const std::int32_t first_other = me == 1 ? 0 : 1;
  const std::string numerics = " (numerics " + std::to_string(kNumericsVersion) + ")";
  EXPECT_EQ(
      refusal<StateError>([&] { mpi::make_exchange({}, mpi::kSegmentBytes, version_of(me)); }),
      "mpi exchange: rank " + std::to_string(first_other) + " runs Embertable " +
          version_of(first_other) + numerics + ", rank " + std::to_string(me) + " " +
          version_of(me) + numerics);
  make_mpi_exchange()->agree("");
}

TEST(MpiExchange, KnowsTheLauncherAndAllOfItsProcesses) {
  const std::optional<MpiLauncher> launcher = find_mpi_launcher();
  ASSERT_TRUE(launcher);
  if (launcher->processes) {
    EXPECT_EQ(make_mpi_exchange()->hosts(), *launcher->processes);
  }
}

}  // namespace
}  // namespace embertable
