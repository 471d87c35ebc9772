#pragma once

// For tests: a job on 60 clicks on 7 sites by 5 users, that it reads from "tiny_clicks.csv".

#include <string>
#include <vector>

#include "apps/jobs/spec/job.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {

inline void write_tiny_clicks(const TemporaryFiles& files) {
  std::string clicks = "click,site,user\n";
  for (int i = 0; i < 60; ++i) {
    clicks +=
        std::to_string(i % 2) + ",s" + std::to_string(i % 7) + "," + std::to_string(i % 5) + "\n";
  }
  files.write("tiny_clicks.csv", clicks);
}

inline constexpr const char* kTinyClicks = R"(
[data]
file = "tiny_clicks.csv"
label = "click"
range = [0, 1]
[ids.site]
column = "site"
keys = "string"
hash = 40
[ids.user]
column = "user"
[tables.site]
dim = 1
initializer = { kind = "normal", stddev = 0.1 }
[tables.user]
dim = 3
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "ctr"
linear = ["site"]
deep = ["user"]
hidden = [4]
[optimizer]
rule = "sgd"
learning_rate = 0.1
[schedule]
batch = 20
epochs = 1
)";

inline Job tiny_clicks(const std::vector<Change>& changes = {}) {
  return parse_job(kTinyClicks, "clicks.toml", changes);
}

}  // namespace embertable::jobs
