#pragma once

// For tests: a job on a text of 18 words, six different ones, that it reads from "text.txt".

#include "apps/jobs/spec/job.h"
#include "testing/temporary_files.h"

namespace embertable::jobs {

inline void write_tiny_words(const TemporaryFiles& files) {
  files.write("text.txt", "a b c a b c a b c d e f a b c d e f");
}

inline constexpr const char* kTinyWords = R"(
[data]
file = "text.txt"
[ids.word]
[tables.word]
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[tables.context]
ids = "word"
dim = 4
initializer = { kind = "normal", stddev = 0.1 }
[model]
kind = "skipgram"
word = "word"
context = "context"
[optimizer]
rule = "sgd"
learning_rate = 0.1
[schedule]
batch = 4
epochs = 1
[split]
test = 0.1
train_on_validation = true
)";

inline Job tiny_words() { return parse_job(kTinyWords, "words.toml"); }

}  // namespace embertable::jobs
