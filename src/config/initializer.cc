#include "embertable/initializer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/float_environment.h"
#include "base/math.h"
#include "base/random.h"
#include "embertable/errors.h"

namespace embertable {

class Initializer::Kind {
 public:
  virtual ~Kind() = default;
  virtual void fill(const RowRange& range, std::uint64_t stream, std::span<float> out) const = 0;
  virtual std::string to_string() const = 0;
  virtual bool is_zero() const noexcept { return false; }
  virtual bool is_default_for(std::int32_t) const noexcept { return false; }

  /// Number of elements of the only table that can be filled; none: any table can be.
  virtual std::optional<std::int64_t> size() const noexcept { return std::nullopt; }
};

namespace {

/// Returns the shortest text that reads as the same number.
std::string text_of(float value) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string seed_text(std::uint64_t seed) {
  return seed == 0 ? "" : ", seed=" + std::to_string(seed);
}

void require(bool holds, const char* what, const char* rule, const std::string& received) {
  if (!holds) throw ValueError(std::string(what) + " must be " + rule + ", got " + received);
}

class Constant final : public Initializer::Kind {
 public:
  explicit Constant(float value) : value_(value) {}
  void fill(const RowRange&, std::uint64_t, std::span<float> out) const override {
    std::ranges::fill(out, value_);
  }
  std::string to_string() const override { return "constant(" + text_of(value_) + ")"; }
  bool is_zero() const noexcept override { return std::bit_cast<std::uint32_t>(value_) == 0; }

 private:
  float value_;
};

class RowId final : public Initializer::Kind {
 public:
  explicit RowId(float offset) : offset_(offset) {}
  void fill(const RowRange& range, std::uint64_t, std::span<float> out) const override {
    for (std::int64_t r = 0; r < range.rows; ++r) {
      const auto value =
          static_cast<float>(double{offset_} + static_cast<double>(range.first_row + r));
      std::fill_n(out.begin() + r * range.dim, range.dim, value);
    }
  }
  std::string to_string() const override { return "row_id(offset=" + text_of(offset_) + ")"; }

 private:
  float offset_;
};

class Uniform final : public Initializer::Kind {
 public:
  Uniform(float low, float high, std::uint64_t seed)
      : low_(low), high_(high), below_high_(std::nextafter(high, low)), seed_(seed) {
    require(std::isfinite(low), "uniform initializer: low", "finite", text_of(low));
    require(std::isfinite(high), "uniform initializer: high", "finite", text_of(high));
    require(low < high, "uniform initializer: low", "below high",
            text_of(low) + " and " + text_of(high));
  }
  void fill(const RowRange& range, std::uint64_t stream, std::span<float> out) const override {
    const double low = low_;
    const double width = double{high_} - low;
    float* to = out.data();
    for (std::int64_t r = 0; r < range.rows; ++r, to += range.dim) {
      const RandomRow random(mix_seeds(stream, seed_),
                             static_cast<std::uint64_t>(range.first_row + r));
      for (std::int32_t c = 0; c < range.dim; ++c) {
        const float u = uniform_float(random.bits(static_cast<std::uint64_t>(c)));
        to[c] = std::min(static_cast<float>(low + width * double{u}), below_high_);
      }
    }
  }
  std::string to_string() const override {
    return "uniform(low=" + text_of(low_) + ", high=" + text_of(high_) + seed_text(seed_) + ")";
  }

 private:
  float low_;
  float high_;
  float below_high_;  ///< maximum result, because a sum may round up to high
  std::uint64_t seed_;
};

/// mean + stddev * quantile of a uniform number; the truncated kind takes the first of its draws
/// within two stddev.
class Normal final : public Initializer::Kind {
 public:
  Normal(const char* name, bool truncated, float mean, float stddev, std::uint64_t seed)
      : name_(name), truncated_(truncated), mean_(mean), stddev_(stddev), seed_(seed) {
    const std::string subject = std::string(name) + " initializer: ";
    require(std::isfinite(mean), (subject + "mean").c_str(), "finite", text_of(mean));
    require(std::isfinite(stddev) && stddev >= 0, (subject + "stddev").c_str(), "finite and >= 0",
            text_of(stddev));
  }
  void fill(const RowRange& range, std::uint64_t stream, std::span<float> out) const override {
    for (std::int64_t r = 0; r < range.rows; ++r) {
      const RandomRow random(mix_seeds(stream, seed_),
                             static_cast<std::uint64_t>(range.first_row + r));
      for (std::int32_t c = 0; c < range.dim; c += kTile) {
        fill_tile(random, c, out.data() + r * range.dim + c, std::min(kTile, range.dim - c));
      }
    }
  }
  std::string to_string() const override {
    return std::string(name_) + "(mean=" + text_of(mean_) + ", stddev=" + text_of(stddev_) +
           seed_text(seed_) + ")";
  }
  bool is_default_for(std::int32_t dim) const noexcept override {
    const double stddev = 1 / std::sqrt(static_cast<double>(dim));
    return truncated_ && mean_ == 0 && std::fabs(stddev_ - stddev) <= 1e-6 * stddev;
  }

 private:
  static constexpr std::int32_t kTile = 64;

  /// Returns a value in (0, 1), the middle of one of 2^52 equal parts, so that neither end occurs
  /// and both tails are equal.
  static double probability(std::uint64_t bits) noexcept {
    return (static_cast<double>(static_cast<std::int64_t>(bits >> 12)) + 0.5) * 0x1p-52;
  }

  void fill_tile(const RandomRow& random, std::int32_t column, float* out,
                 std::int32_t n) const noexcept {
    double p[kTile] = {};
    double z[kTile];
    const auto first = static_cast<std::uint64_t>(column);
    for (std::int32_t i = 0; i < n; ++i)
      p[i] = probability(random.bits(first + static_cast<std::uint64_t>(i)));
    math::normal_quantiles(p, z, n);
    if (truncated_) {
      for (std::int32_t i = 0; i < n; ++i) {
        if (std::fabs(z[i]) > 2) z[i] = drawn_again(random, first + static_cast<std::uint64_t>(i));
      }
    }
    for (std::int32_t i = 0; i < n; ++i)
      out[i] = static_cast<float>(double{mean_} + double{stddev_} * z[i]);
  }

  static double drawn_again(const RandomRow& random, std::uint64_t column) noexcept {
    double z = 3;
    for (std::uint64_t draw = 1; std::fabs(z) > 2; ++draw) {
      z = math::normal_quantile(probability(random.bits(column, draw)));
    }
    return z;
  }

  const char* name_;
  bool truncated_;
  float mean_;
  float stddev_;
  std::uint64_t seed_;
};

class Values final : public Initializer::Kind {
 public:
  explicit Values(std::vector<float> values) : values_(std::move(values)) {}
  void fill(const RowRange& range, std::uint64_t, std::span<float> out) const override {
    require(range.vocabulary_size * range.dim == *size(),
            "values initializer: vocabulary_size * dim", std::to_string(*size()).c_str(),
            std::to_string(range.vocabulary_size) + " * " + std::to_string(range.dim));
    require(range.first_row >= 0 && range.rows <= range.vocabulary_size - range.first_row,
            "values initializer: rows", "of the table",
            std::to_string(range.rows) + " from " + std::to_string(range.first_row));
    std::copy_n(values_.begin() + range.first_row * range.dim, range.rows * range.dim, out.begin());
  }
  std::string to_string() const override {
    return "values(" + std::to_string(values_.size()) + ")";
  }
  std::optional<std::int64_t> size() const noexcept override {
    return static_cast<std::int64_t>(values_.size());
  }

 private:
  std::vector<float> values_;
};

class Callable final : public Initializer::Kind {
 public:
  explicit Callable(Initializer::Function function) : function_(std::move(function)) {
    require(function_ != nullptr, "function initializer: the function", "callable", "none");
  }
  void fill(const RowRange& range, std::uint64_t, std::span<float> out) const override {
    function_(range, out);
  }
  std::string to_string() const override { return "function"; }

 private:
  Initializer::Function function_;
};

}  // namespace

Initializer Initializer::zeros() { return constant(0); }

Initializer Initializer::constant(float value) {
  return Initializer(std::make_shared<const Constant>(value));
}

Initializer Initializer::uniform(float low, float high, std::uint64_t seed) {
  const FloatEnvironment ours;
  return Initializer(std::make_shared<const Uniform>(low, high, seed));
}

Initializer Initializer::normal(float mean, float stddev, std::uint64_t seed) {
  return Initializer(std::make_shared<const Normal>("normal", false, mean, stddev, seed));
}

Initializer Initializer::truncated_normal(float mean, float stddev, std::uint64_t seed) {
  return Initializer(std::make_shared<const Normal>("truncated_normal", true, mean, stddev, seed));
}

Initializer Initializer::row_id(float offset) {
  return Initializer(std::make_shared<const RowId>(offset));
}

Initializer Initializer::values(std::vector<float> values) {
  return Initializer(std::make_shared<const Values>(std::move(values)));
}

Initializer Initializer::function(Function function) {
  return Initializer(std::make_shared<const Callable>(std::move(function)));
}

Initializer Initializer::default_for(std::int32_t dim) {
  const FloatEnvironment ours;
  if (dim < 1) throw ValueError("initializer: dim must be >= 1, got " + std::to_string(dim));
  return truncated_normal(0, 1 / std::sqrt(static_cast<float>(dim)));
}

bool Initializer::is_default_for(std::int32_t dim) const noexcept {
  return kind_->is_default_for(dim);
}

bool Initializer::is_zero() const noexcept { return kind_->is_zero(); }
bool Initializer::is_materialized() const noexcept { return kind_->size().has_value(); }

void Initializer::fill(const RowRange& range, std::uint64_t stream, std::span<float> out) const {
  if (range.dim < 1 || static_cast<std::int64_t>(out.size()) != range.rows * range.dim) {
    throw ValueError("initializer: out must have rows * dim floats, " + std::to_string(range.rows) +
                     " * " + std::to_string(range.dim) + ", got " + std::to_string(out.size()));
  }
  const FloatEnvironment ours;
  kind_->fill(range, stream, out);
}

void Initializer::check(const std::string& table, std::int64_t vocabulary_size,
                        std::int32_t dim) const {
  const std::optional<std::int64_t> size = kind_->size();
  std::int64_t needed = 0;
  const bool countable = !__builtin_mul_overflow(vocabulary_size, std::int64_t{dim}, &needed);
  if (!size || (countable && *size == needed)) return;
  throw ValueError((table.empty() ? "table" : "table '" + table + "'") +
                   ": initializer must have vocabulary_size * dim values, " +
                   std::to_string(vocabulary_size) + " * " + std::to_string(dim) + ", got " +
                   std::to_string(*size));
}

std::string Initializer::to_string() const { return kind_->to_string(); }

}  // namespace embertable
