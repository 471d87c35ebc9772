"""Embedding tables as modules of PyTorch.

    model.tables = embertable.torch.EmbeddingBagCollection(tables, embertable.Adagrad(0.05))

EmbeddingBag, Embedding, EmbeddingBagCollection and EmbeddingCollection take the inputs of torch's and torchrec's modules of
these names. They have no parameters: backward applies their own optimizer, so that torch.optim and DistributedDataParallel
see the dense part alone. `save` and `load` commit a whole training as one step. This module imports torch; the rest of the
package does not.
"""

import torch as _torch

if tuple(map(int, _torch.__version__.split("+")[0].split(".")[:2])) < (2, 4):
    raise ImportError(f"embertable.torch needs torch 2.4 or newer, found {_torch.__version__}")

from ..steps import AbandonedStepWarning
from .bag_collection import EmbeddingBagCollection, KeyedTensor
from .checkpoint import Loaded, load, save
from .collection import EmbeddingBagConfig, EmbeddingConfig
from .imports import import_state
from .modules import Embedding, EmbeddingBag, TableModule
from .optimizer import TableOptimizer
from .sequence_collection import EmbeddingCollection, JaggedTensor

__all__ = ["AbandonedStepWarning", "Embedding", "EmbeddingBag", "EmbeddingBagCollection", "EmbeddingBagConfig", "EmbeddingCollection",
           "EmbeddingConfig", "JaggedTensor", "KeyedTensor", "Loaded", "TableModule", "TableOptimizer", "import_state", "load", "save"]
