#include "step/hot_rows.h"

#include "kernels/stage_clock.h"

namespace embertable {

HotBucket* HotRows::find(const TableUpdate& table, std::int64_t first, std::int64_t count) {
  if (buckets_.size() == buckets_in_use_) buckets_.emplace_back();
  HotBucket& hot = buckets_[buckets_in_use_];
  if (!hot.find(table, first, count)) return nullptr;
  ++buckets_in_use_;
  return &hot;
}

std::int32_t HotRows::sum(Workers& workers, SimdLevel level) {
  parts_.clear();
  std::int64_t floats = 0, most_parts = 0;
  for (std::size_t i = 0; i < buckets_in_use_; ++i) {
    HotBucket& hot = buckets_[i];
    hot.cut(workers.count());
    most_parts += hot.most_parts();
    parts_.reserve(most_parts);
    for (std::int64_t part = 0; part < hot.parts(); ++part) parts_.push_back({&hot, part});
    floats += hot.floats();
  }
  return workers.run(std::ssize(parts_), floats, [&](const WorkItem& work) {
    StageLap lap;
    const Part& part = parts_[work.index];
    part.bucket->sum_part(part.part, level);
    lap.to(StepStage::kSumAndUpdate);
  });
}

std::int64_t HotRows::bytes() const noexcept {
  std::int64_t bytes = 0;
  for (const HotBucket& hot : buckets_) bytes += hot.bytes();
  return bytes;
}

}  // namespace embertable
