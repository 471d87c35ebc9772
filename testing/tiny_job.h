#pragma once

// For tests: a job on 200 ratings of a known kind, with the files that it reads.

#include <string>
#include <vector>

#include "apps/jobs/models/records_model.h"
#include "apps/jobs/spec/job.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {

/// User u (of 20, key 100 + u) rates item i (of 10, keys "i0".. by number 7 + 3 * i) with 1 + (u +
/// i) % 5; item i has the tags "t0" to "t<i % 4>", item 9 has no record.
inline void write_tiny_data(const TemporaryFiles& files) {
  std::string ratings = "user,item,rating\n", tags = "item;tags\n", names = "item,name\n";
  for (int u = 0; u < 20; ++u) {
    for (int i = 0; i < 10; ++i) {
      ratings += std::to_string(100 + u) + "," + std::to_string(7 + 3 * i) + "," +
                 std::to_string(1 + (u + i) % 5) + "\n";
    }
  }
  for (int i = 0; i < 9; ++i) {
    tags += std::to_string(7 + 3 * i) + ";t0";
    for (int t = 1; t <= i % 4; ++t) tags += "|t" + std::to_string(t);
    tags += "\n";
    names += std::to_string(7 + 3 * i) + ",\"Item, No. " + std::to_string(i) + "\"\n";
  }
  files.write_compressed("ratings.csv.gz", ratings);
  files.write("tags.csv", tags);
  files.write("names.csv", names);
}

inline constexpr const char* kTinyJob = R"(
[data]
file = "ratings.csv.gz"
label = "rating"
range = [1, 5]
[ids.user]
column = "user"
[ids.item]
column = "item"
[ids.tag]
file = "tags.csv"
field_separator = ";"
key = "item"
of = "item"
column = "tags"
keys = "string"
separator = "|"
[names.item]
file = "names.csv"
key = "item"
name = "name"
[tables.user]
dim = 5
initializer = { kind = "normal", stddev = 0.1 }
[tables.item]
dim = 5
initializer = { kind = "normal", stddev = 0.1 }
[tables.tag]
dim = 5
initializer = { kind = "normal", stddev = 0.1 }
[tables.user_bias]
ids = "user"
dim = 1
initializer = { kind = "zeros" }
[tables.item_bias]
ids = "item"
dim = 1
initializer = { kind = "zeros" }
[model]
kind = "mf"
user = "user"
item = "item"
user_bias = "user_bias"
item_bias = "item_bias"
sides = ["tag"]
regularization = 0.02
[optimizer]
rule = "sgd"
learning_rate = 0.05
decay = 0.9
[schedule]
batch = 24
epochs = 2
[split]
by = ["user", "item"]
train_on_validation = true
)";

inline Job tiny_job(const std::vector<Change>& changes = {}) {
  return parse_job(kTinyJob, "tiny.toml", changes);
}

/// The records of a job whose model is of records.
inline RecordsSpec records_of(const Job& job) {
  return dynamic_cast<const RecordsModelSpec&>(*job.model).records();
}
inline RecordsSpec tiny_records(const std::vector<Change>& changes = {}) {
  return records_of(tiny_job(changes));
}

}  // namespace embertable::jobs
