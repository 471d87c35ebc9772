// Calls whose indices another thread changes.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "embertable/errors.h"
#include "embertable/variables/sharded_variable.h"
#include "testing/refusal.h"

namespace embertable {
namespace {

/// Runs on the calling thread, says that it has two workers, and calls `between` with the number of
/// regions that have ended, before the first one and after each.
class ChangingExecutor final : public Executor {
 public:
  std::function<void(int)> between = [](int) {};

  std::int32_t workers() const noexcept override { return 2; }
  void run(std::int64_t items, FunctionRef<void(const WorkItem&)> body) override {
    if (ended_ == 0) between(0);
    for (std::int64_t i = 0; i < items; ++i) body({i, -1, static_cast<std::int32_t>(i % 2)});
    between(++ended_);
  }
  int ended() const { return ended_; }

 private:
  int ended_ = 0;
};

constexpr std::int64_t kChangingRows = 100'000;

/// A variable of two components, and a call that names kCalled of its rows, never row 0.
template <class Id>
class ChangingCall {
 public:
  static constexpr std::int64_t kCalled = 80'000, kChanged = 1000;

  explicit ChangingCall(std::int64_t dim)
      : dim_(dim),
        executor_(std::make_shared<ChangingExecutor>()),
        variable_({Variable(Tensor(DType::kFloat32, {kChangingRows / 2, dim})),
                   Variable(Tensor(DType::kFloat32, {kChangingRows / 2, dim}))},
                  {.name = "v", .executor = executor_}) {
    for (std::int64_t i = 0; i < kCalled; ++i)
      ids_.push_back(static_cast<Id>(1 + i * 7919 % (kChangingRows - 1)));
    good_ = ids_[kChanged];
  }

  /// Sets an index of the call when this many regions have ended.
  void change_after(int regions, Id index) {
    executor_->between = [this, regions, index](int ended) {
      if (ended == regions) ids_[kChanged] = index;
    };
  }
  void set(Id index) { ids_[kChanged] = index; }
  Id good() const { return good_; }

  Tensor read() const { return variable_.sparse_read(indices()); }
  void scatter() {
    const std::vector<float> ones(static_cast<std::size_t>(kCalled * dim_), 1.0f);
    variable_.scatter_add(indices(), Tensor::of<float>(ones, {kCalled, dim_}));
  }

  /// Returns the first element of each row.
  std::vector<float> rows() const {
    const Tensor all = variable_.value();
    std::vector<float> first;
    for (std::int64_t r = 0; r < kChangingRows; ++r)
      first.push_back(all.values<float>()[static_cast<std::size_t>(r * dim_)]);
    return first;
  }

  /// Returns what `rows` is after one scatter of the indices that the call began with.
  std::vector<float> added() const {
    std::vector<float> rows(kChangingRows);
    for (std::int64_t i = 0; i < kCalled; ++i)
      rows[static_cast<std::size_t>(i == kChanged ? good_ : ids_[i])] += 1;
    return rows;
  }
  int regions() const { return executor_->ended(); }

 private:
  Tensor indices() const {
    constexpr DType kType = sizeof(Id) == 8 ? DType::kInt64 : DType::kInt32;
    return Tensor::wrap(ids_.data(), kType, {kCalled}, nullptr);
  }

  std::int64_t dim_;
  std::shared_ptr<ChangingExecutor> executor_;
  ShardedVariable variable_;
  std::vector<Id> ids_;
  Id good_ = 0;
};

/// The dims of rows that workers change by parts, and by ranges.
constexpr std::int64_t kDims[] = {4, 16};

template <class Id>
void scatter_takes_what_it_checked(Id bad) {
  for (const std::int64_t dim : kDims) {
    ChangingCall<Id> calm(dim);
    calm.scatter();
    ASSERT_GE(calm.regions(), 3);
    for (int regions = 1; regions < calm.regions(); ++regions) {
      ChangingCall<Id> call(dim);
      call.change_after(regions, bad);
      call.scatter();
      EXPECT_EQ(call.rows(), call.added()) << "dim " << dim << ", after region " << regions;
    }
  }
}

TEST(ChangingIndices, AScatterTakesWhatItChecked) {
  scatter_takes_what_it_checked<std::int64_t>(std::int64_t{1} << 45);
  scatter_takes_what_it_checked<std::int64_t>(0);
  scatter_takes_what_it_checked<std::int32_t>(-5);
}

TEST(ChangingIndices, AScatterThatRefusesThemChangesNothing) {
  for (const std::int64_t dim : kDims) {
    ChangingCall<std::int64_t> call(dim);
    call.change_after(0, kChangingRows);
    EXPECT_EQ(refusal<IndexError>([&] { call.scatter(); }),
              "sharded variable 'v': scatter_add: indices[1000] = 100000 is out of bounds for axis "
              "0 with size 100000, behind component 1 ('Variable') of rows [50000, 100000)");
    EXPECT_EQ(call.rows(), std::vector<float>(kChangingRows));
  }
}

TEST(ChangingIndices, AReadRefusesThem) {
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{1} << 45}) {
    ChangingCall<std::int64_t> call(16);
    call.change_after(1, bad);
    EXPECT_EQ(refusal<IndexError>([&] { call.read(); }),
              "sharded variable 'v': sparse_read: indices must not change during the call");
  }
}

TEST(ChangingIndices, ThatAreGoodAgainAreStillRefused) {
  const std::string text = ": indices must not change during the call";
  ChangingCall<std::int64_t> read(16), scatter(16);
  for (auto* call : {&read, &scatter}) {
    call->set(-5);
    call->change_after(1, call->good());
  }
  EXPECT_EQ(refusal<IndexError>([&] { read.read(); }), "sharded variable 'v': sparse_read" + text);
  EXPECT_EQ(refusal<IndexError>([&] { scatter.scatter(); }),
            "sharded variable 'v': scatter_add" + text);
}

TEST(ChangingIndices, TheFirstOfSeveralIsNamed) {
  ChangingCall<std::int32_t> call(4);
  call.set(-7);
  EXPECT_NE(refusal<IndexError>([&] { call.read(); }).find("indices[1000] = -7 "),
            std::string::npos);
}

}  // namespace
}  // namespace embertable
