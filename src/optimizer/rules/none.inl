#ifndef EMBERTABLE_LEVEL

/// Adds the rows of a tile to the sums that the caller receives.
constexpr UpdateRows add_to_sums = [](const RowTile& tile, const StepScalars& step) noexcept {
  if (step.context != nullptr) static_cast<GradientSums*>(step.context)->add(tile);
};
constexpr RuleForms kAddToSums = {.rows = add_to_sums, .limited_rows = add_to_sums};

/// Rows stay as they are; the caller receives their ids and summed gradients. Source: FBGEMM 1.9,
/// OptimType.NONE.
constexpr RuleSpec none = {
    .name = "none",
    .default_learning_rate = 0,
    .gives_sums = true,
    .check =
        [](const Optimizer& optimizer) {
          const OptimizerOptions& options = optimizer.options();
          if (!options.use_gradient_accumulation)
            throw ValueError("none: use_gradient_accumulation must be true, got false");
          if (options.clip_gradient_min || options.clip_gradient_max || options.clip_weight_min ||
              options.clip_weight_max || options.weight_decay_factor != 0) {
            throw ValueError(
                "none: limits and weight_decay_factor must be unset where no row changes, got " +
                optimizer.to_string());
          }
        },
    .forms = {kAddToSums, kAddToSums, kAddToSums},
};

#endif
