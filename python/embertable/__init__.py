"""Trains, stores and serves embedding tables.

Tables and features are described by TableConfig and FeatureConfig; an Embedding takes batches of ids,
returns activations as arrays, and takes their gradients. Nested structures are Python's own.
"""

import types as _types

try:
    from ._core import *  # noqa: F401,F403
    from ._core import __version__
except ImportError as _error:
    from ._supported import explained as _explained
    raise _explained(_error) from _error
from ._copying import install as _install_copying
from ._signatures import install as _install_signatures
from .diagnosis import Diagnosis, Finding, doctor
from .jobs import evaluate, predict, sweep, train
from .optimizers import *  # noqa: F401,F403
from .partitioner import Partitioner

_install_copying()
globals().update(_install_signatures())

__all__ = sorted(name for name, value in globals().items()
                 if not name.startswith("_") and not isinstance(value, _types.ModuleType))


_MODULES = ("exchange", "gradient_interception", "torch", "tpu_embedding", "v1")


def __getattr__(name):
    """Modules are imported when they are first used, embertable.torch and exchange with torch."""
    if name in _MODULES:
        import importlib
        try:
            return importlib.import_module("." + name, __name__)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise AttributeError(f"embertable.{name} needs PyTorch: pip install torch", name=name) from error
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_MODULES})
