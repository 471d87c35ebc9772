// Which of the hosts' errors arrives.
#include "engine/host_team.h"

#include <gtest/gtest.h>

#include "embertable/errors.h"
#include "exchange/threads_exchange.h"
#include "testing/refusal.h"

namespace embertable::engine {
namespace {

HostTeam team_of(std::int32_t hosts, const Assembly& assembly) {
  std::vector<std::unique_ptr<Host>> all;
  for (auto& exchange : make_threads_exchange(hosts))
    all.push_back(std::make_unique<Host>(std::move(exchange), 0, make_inline_executor(), assembly,
                                         Tables({}, hosts, Sharding::kDiv, 0, hosts, 0),
                                         std::span<NamedShares>(), 1, EmbeddingOptions::Tuning()));
  return HostTeam(std::move(all));
}

TEST(HostTeam, ThrowsTheCauseAndNotItsEcho) {
  const Assembly assembly;
  HostTeam team = team_of(3, assembly);
  for (const std::int32_t at_fault : {0, 1, 2}) {
    EXPECT_EQ(refusal<IoError>([&] {
                team.run([&](Host& host) {
                  if (&host == &team.host(at_fault)) throw IoError("no memory");
                });
              }),
              "no memory");
  }
}

TEST(HostTeam, ThrowsTheFirstHostsErrorIfSeveralHaveTheirOwn) {
  const Assembly assembly;
  HostTeam team = team_of(3, assembly);
  EXPECT_EQ(refusal<ValueError>([&] {
              team.run([&](Host& host) {
                if (&host == &team.host(0)) return;
                throw ValueError(&host == &team.host(1) ? "one" : "two");
              });
            }),
            "one");
  EXPECT_NO_THROW(team.run([](Host&) {}));
}

}  // namespace
}  // namespace embertable::engine
