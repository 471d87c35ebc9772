"""The base class of partitioners."""

from __future__ import annotations

import abc
from typing import Any, Optional, Sequence

from ._core import FixedShardsPartitioner, MaxSizePartitioner, MinSizePartitioner


class Partitioner(abc.ABC):
    """Says into how many parts a variable is cut. Programs derive from it and write `__call__`, or take one of
    FixedShardsPartitioner, MinSizePartitioner and MaxSizePartitioner, which count as derived from it. A VariableCreator also
    takes a plain function.

    >>> class Halves(embertable.Partitioner):
    ...     def __call__(self, shape, dtype, axis=0):
    ...         return [2 if i == axis else 1 for i in range(len(shape))]
    >>> creator = embertable.VariableCreator(storage_nodes=2, variable_partitioner=Halves())
    >>> [part.shape for part in creator.create(np.zeros((5, 3), np.float32)).variable]
    [(3, 3), (2, 3)]
    """

    def __call__(self, shape: Sequence[int], dtype: Any, axis: int = 0) -> Optional[Sequence[int]]:
        """The number of parts by axis, all 1 but that of `axis`. shape: of the variable. dtype: NumPy's. Raises
        NotImplementedError in this class.

        >>> embertable.FixedShardsPartitioner(2)((5, 3), np.float32)
        [2, 1]
        """
        raise NotImplementedError(f"{type(self).__name__} must have a __call__(shape, dtype, axis=0)")


for _one in (FixedShardsPartitioner, MinSizePartitioner, MaxSizePartitioner):
    Partitioner.register(_one)
