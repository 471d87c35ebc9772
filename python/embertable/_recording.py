"""Tells whether a framework records the calling code instead of running it.

Inside of tf.function, jax.jit, torch.compile and the like, Python runs once, when a function is recorded. A call on
one of our objects would take place then, and never again; the numbers that it gives would become constants. The extension
asks here before it changes or reads anything.
"""

import sys
from typing import Any


def _tensorflow_records(tensorflow: Any) -> bool:
    if tensorflow.executing_eagerly():
        return False
    return bool(getattr(tensorflow.compat.v1.get_default_graph(), "building_function", False))


def _jax_records(jax: Any) -> bool:
    own = sys.modules.get("jax._src.core")  # newer versions have the function there alone
    clean = getattr(jax.core, "trace_state_clean", None) or getattr(own, "trace_state_clean", None)
    if clean is not None and clean():
        return False
    return isinstance(jax.numpy.zeros(()), jax.core.Tracer)  # under jax.grad alone, code runs as it is


def _torch_records(torch: Any) -> bool:
    return bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


_FRAMEWORKS = (
    ("tensorflow", "TensorFlow", _tensorflow_records, "tf.numpy_function or tf.py_function"),
    ("jax", "JAX", _jax_records, "jax.pure_callback or jax.experimental.io_callback"),
    ("torch", "PyTorch", _torch_records, "a function that torch.compiler.disable marks"),
)

# Modules of what stands for tensors in code that torch.fx records, whether or not the recorder says so.
_STAND_INS = ("torch.fx.proxy", "torch._subclasses.fake_tensor", "torch._subclasses.functional_tensor")


def reason_to_refuse(what: str) -> str | None:
    """Returns why `what` must not be used here, or None."""
    for module, name, records, through in _FRAMEWORKS:
        loaded = sys.modules.get(module)
        try:
            recorded = loaded is not None and records(loaded)
        except AttributeError:  # it is being imported, or a version that has no such function
            continue
        if recorded:
            return _reason(what, name, through)
    return None


def reason_to_refuse_argument(argument: Any, what: str) -> str | None:
    """Returns why an argument that cannot be read must not be given here, or None. The extension asks where it fails to read
    numbers: inside of code that is recorded, an argument may stand for those that come with each call of the function."""
    subject = f"{what} must have values, got {type(argument).__name__}; Embertable"
    reason = reason_to_refuse(subject)
    if reason is None and type(argument).__module__ in _STAND_INS:
        _, name, _, through = _FRAMEWORKS[-1]
        reason = _reason(subject, name, through)
    return reason


def _reason(what: str, name: str, through: str) -> str:
    return (f"{what} is used inside of a function that {name} records: the call would run once, when the function is recorded, "
            f"and not with each of its calls. Use it outside of the function, or through {through}")
