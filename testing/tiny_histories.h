#pragma once

// For tests: jobs of users' items of a known kind, with the files that they read.

#include <string>
#include <vector>

#include "apps/jobs/spec/job.h"
#include "base/random.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {

/// "groups.txt": of 80 users and 40 items those with the same number modulo 4 belong together; a
/// user (key 100 + u) has 7 of the group's 10 items. "chains.txt": after an item of class c < 30
/// comes one of class c + 1; of each class there are three, i with i % 30 == c (keys 1000 + i).
/// "classes.txt": the class of every item, in the order of the items backwards, and "even" ones
/// have the attribute 77 too; item 5 lacks a line.
inline void write_tiny_histories(const TemporaryFiles& files) {
  std::string groups, chains, classes;
  for (std::uint64_t u = 0; u < 80; ++u) {
    groups += std::to_string(100 + u);
    const Permutation order(10, u);
    for (std::int64_t k = 0; k < 7; ++k)
      groups += " " + std::to_string(order[k] * 4 + static_cast<std::int64_t>(u % 4));
    groups += "\n";
  }
  for (std::uint64_t u = 0; u < 300; ++u) {
    chains += std::to_string(u);
    for (std::uint64_t k = 0; k < 8; ++k) {
      const std::uint64_t item = (u * 7 + k) % 30 + 30 * (random_bits(9, u, k) % 3);
      chains += " " + std::to_string(1000 + item);
    }
    chains += "\n";
  }
  for (int item = 89; item >= 0; --item) {
    if (item == 5) continue;
    classes += std::to_string(1000 + item) + " " + std::to_string(item % 30) +
               (item % 2 == 0 ? " 77\n" : "\n");
  }
  files.write("groups.txt", groups);
  files.write_compressed("chains.txt", chains);
  files.write("classes.txt", classes);
}

inline constexpr const char* kTinyPairs = R"(
metrics = ["recall@10", "ndcg@10"]
[data]
format = "lists"
file = "groups.txt"
[ids.user]
[ids.item]
[tables.user]
dim = 9
initializer = { kind = "normal", stddev = 0.1 }
[tables.item]
dim = 9
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "pairwise"
user = "user"
item = "item"
negatives = 2
regularization = 0.002
[optimizer]
rule = "sgd"
learning_rate = 0.2
[schedule]
batch = 64
epochs = 2
[split]
train_on_validation = true
)";

inline constexpr const char* kTinyChains = R"(
metrics = ["hr@3", "ndcg@3"]
[data]
format = "lists"
file = "chains.txt"
[ids.user]
[ids.item]
[ids.class]
of = "item"
format = "lists"
file = "classes.txt"
[tables.before]
ids = "item"
dim = 10
initializer = { kind = "normal", stddev = 0.1 }
[tables.next]
ids = "item"
dim = 10
initializer = { kind = "normal", stddev = 0.1 }
[tables.before_class]
ids = "class"
dim = 10
initializer = { kind = "normal", stddev = 0.1 }
[tables.next_class]
ids = "class"
dim = 10
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "next_item"
history = "before"
item = "next"
history_attributes = "before_class"
attributes = "next_class"
last = 2
negatives = 8
[optimizer]
rule = "adagrad"
learning_rate = 0.2
[schedule]
batch = 288
epochs = 1
[split]
train_on_validation = true
)";

inline Job tiny_pairs(const std::vector<Change>& changes = {}) {
  return parse_job(kTinyPairs, "pairs.toml", changes);
}
inline Job tiny_chains(const std::vector<Change>& changes = {}) {
  return parse_job(kTinyChains, "chains.toml", changes);
}

}  // namespace embertable::jobs
