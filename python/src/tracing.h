#pragma once

namespace embertable::python {

/// Throws StateError if a framework records the calling code instead of running it, as inside of
/// tf.function, jax.jit and torch.compile: what the code does with `what`, "the embedding", would
/// happen once, and what it reads would become a constant. Requires the GIL.
void refuse_recording(const char* what);

}  // namespace embertable::python
