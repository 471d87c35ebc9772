"""Tables whose rows stay as they are, one for each id, as torchrec's EmbeddingCollection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np
import torch

from .._arguments import require_kind, whole_number
from .._core import EngineStrategy, Optimizer
from ..steps import SINGLES, Ids
from .collection import Collection, EmbeddingConfig
from .compiled import pack_apart, pack_keyed, pack_singles
from .inputs import elements_of, is_jagged, is_keyed, lengths_of, shaped_as, weights_of
from .modules import arguments_of, refuse_others, refuse_trace, tracing_state

__all__ = ["EmbeddingCollection", "JaggedTensor"]


class JaggedTensor:
    """As torchrec's: what sequences of several samples have, one after the other.

    values: [elements, ...]. lengths: [samples], integers; or offsets: [samples + 1], where each sequence begins, and the end.
    """

    def __init__(self, values: torch.Tensor, lengths: torch.Tensor | None = None, *, offsets: torch.Tensor | None = None) -> None:
        require_kind("JaggedTensor", "values", values, torch.Tensor, "a tensor")
        if offsets is not None and lengths is None:
            _require_integers("offsets", "[samples + 1]", offsets)
            if not torch.compiler.is_compiling() and offsets.is_cpu and (len(offsets) == 0 or int(offsets[0]) != 0):
                raise ValueError(f"JaggedTensor: offsets must begin with 0, got {offsets.tolist()}")
            lengths = offsets.diff()
        elif lengths is None or offsets is not None:
            raise TypeError("JaggedTensor: either lengths or offsets must be given")
        else:
            _require_integers("lengths", "[samples]", lengths)
        self._values, self._lengths = values, lengths

    def __repr__(self) -> str:
        return f"JaggedTensor(values={self._values}, lengths={self._lengths})"

    def values(self) -> torch.Tensor:
        return self._values

    def lengths(self) -> torch.Tensor:
        return self._lengths

    def offsets(self) -> torch.Tensor:
        """[samples + 1]: where each sequence begins, and the number of elements."""
        return torch.cat([self._lengths.new_zeros(1), self._lengths.cumsum(0)])

    def to_dense(self) -> list[torch.Tensor]:
        """The sequence of each sample, [length, ...]."""
        self._require_sum()
        return list(self._values.split(self._lengths.tolist()))

    def to_padded_dense(self, desired_length: int | None = None, padding_value: float = 0.0) -> torch.Tensor:
        """[samples, desired_length, ...], by default the longest length. Longer sequences are cut, others are filled up."""
        self._require_sum()
        values, lengths = self._values, self._lengths.to(self._values.device)
        if desired_length is None:
            desired_length = int(lengths.max()) if len(lengths) else 0
        elif not torch.compiler.is_compiling():
            desired_length = whole_number("JaggedTensor", "desired_length", desired_length)
            if desired_length < 0:
                raise ValueError(f"JaggedTensor: desired_length must be >= 0, got {desired_length}")
        # Without a branch on the data, which compiled code cannot have: elements that are absent are those of one more row.
        filled = torch.cat([values, values.new_full((1, *values.shape[1:]), padding_value)])
        at = torch.arange(desired_length, device=values.device)
        return filled[torch.where(at < lengths[:, None], (lengths.cumsum(0) - lengths)[:, None] + at, len(values))]

    def _require_sum(self) -> None:
        """Where lengths can be read without waiting."""
        lengths = self._lengths
        if torch.compiler.is_compiling() or not lengths.is_cpu:
            return
        if int(lengths.sum()) != len(self._values) or (lengths < 0).any():
            raise ValueError(f"JaggedTensor: lengths must not be negative, and add up to the number of values, {len(self._values)}; got "
                             f"{lengths.tolist()}")


def _require_integers(what: str, shape: str, bounds: Any) -> None:
    require_kind("JaggedTensor", what, bounds, torch.Tensor, "a tensor")
    if bounds.dim() != 1 or bounds.is_floating_point() or bounds.dtype is torch.bool:
        raise ValueError(f"JaggedTensor: {what} must be integers {shape}, got {bounds.dtype} of shape {tuple(bounds.shape)}")


class EmbeddingCollection(Collection):
    """As torchrec's: a row for each id of several features, in one engine and one step.

    forward takes a KeyedJaggedTensor and gives a dict of JaggedTensors; or a dict by feature. Of that, ids in a tensor of any
    shape, nested ones too, give rows in a tensor of this shape, and a JaggedTensor gives one. A feature of several tables is
    `feature@table` in what comes out. Lengths that come out are those of the batch, not copies.
    """

    _key = "embeddings.{table}.weight"
    _config = EmbeddingConfig
    _pooled = False

    def __init__(self, tables: Sequence[Any], optimizer: Optimizer | None = None, *, strategy: EngineStrategy | None = None,
                 seed: int | None = None, rank_gradients: str = "mean", gradient_policy: Literal["error", "allow"] = "error",
                 out_of_range: Literal["error", "drop"] = "error", **others: NoReturn) -> None:
        title = "EmbeddingCollection"
        if "need_indices" in others:
            raise TypeError(f"{title}: need_indices is not offered: the batch has them")
        if others:
            refuse_others(title, others, arguments_of(EmbeddingCollection))
        if isinstance(strategy, EngineStrategy) and strategy.local_replicas > 1:
            raise NotImplementedError(f"{title}: strategy must have one replica in a process, got {strategy.local_replicas}: a batch's ids, "
                                      "and not its samples, would be shared out among them")
        super().__init__(title, tables, optimizer, strategy=strategy, seed=seed, rank_gradients=rank_gradients,
                         gradient_policy=gradient_policy, out_of_range=out_of_range)

    def embedding_configs(self) -> list[Any]:
        """The configurations of the tables, as they were given."""
        return list(self._configs)

    def forward(self, features: Any) -> dict[str, Any]:
        if not torch.compiler.is_compiling() and tracing_state() is not None:
            refuse_trace(self._steps.name)
        if isinstance(features, Mapping):
            return self._of_mapping(features)
        self._require_keyed(features)
        self._refuse_weights("the batch has", features)
        keys, lengths = list(features.keys()), lengths_of(features)
        if lengths.dim() == 1:  # else the reader says what is wrong
            lengths = lengths.view(len(keys), self._reader.samples_of(lengths.shape[0], len(keys)))
        if torch.compiler.is_compiling():
            rows = self._look_up_compiled(*pack_keyed(self._reader, features, self._used, False, apart=True))
        else:
            rows = self._look_up(features, lambda: self._reader.keyed(features, self._used, False, apart=True))
        by_key = dict(zip(keys, lengths.unbind()))
        return {name: JaggedTensor(mine, by_key[used]) for name, used, mine in zip(self._names, self._used, rows)}

    def _of_mapping(self, features: Mapping[str, Any]) -> dict[str, Any]:
        self._reader.require_features(features, self._used)
        values = [features[name] for name in self._used]
        if torch.compiler.is_compiling():
            rows = self._look_up_compiled(*self._packed(values))
        else:
            plain = self._look_up_plain(values, SINGLES)
            rows = plain if plain is not None else self._look_up_each(values)
        found = {}
        for name, ids, mine in zip(self._names, values, rows):
            found[name] = JaggedTensor(mine, ids.lengths()) if is_jagged(ids) else shaped_as(ids, mine)
        return found

    def _look_up_each(self, values: Sequence[Any]) -> list[torch.Tensor]:
        ids = [self._ids_of(feature, value) for feature, value in enumerate(values)]
        return self._look_up(ids, lambda: [self._read(feature, one) for feature, one in enumerate(ids)])

    def _read(self, feature: int, ids: Any) -> Ids:
        return self._reader.apart(ids, None, feature) if is_jagged(ids) else self._reader.single(ids, feature)

    def _packed(self, values: Sequence[Any]) -> tuple[list[torch.Tensor], list[int]]:
        """What compiled code takes."""
        tensors: list[torch.Tensor] = []
        form: list[int] = []
        for feature, value in enumerate(values):
            ids = self._ids_of(feature, value)
            found, code = pack_apart(ids) if is_jagged(ids) else pack_singles(ids)
            tensors.extend(found)
            form.extend(code)
        return tensors, form

    def _ids_of(self, feature: int, value: Any) -> Any:
        """The ids of a feature: a tensor that is not nested, an array, or what is like a JaggedTensor."""
        name, what = self._steps.name, self._reader.what[feature]
        if isinstance(value, torch.Tensor):
            return elements_of(value, name, what)
        if is_jagged(value) and not is_keyed(value):
            self._refuse_weights(f"{what} have", value)
            require_kind(name, f"lengths of {what}", value.lengths(), torch.Tensor, "a tensor")
            return value
        if isinstance(value, np.ndarray):
            return value
        raise TypeError(f"{name}: {what} must be a tensor, or a JaggedTensor of values and lengths, got {type(value).__name__}")

    def _refuse_weights(self, what: str, value: Any) -> None:
        if weights_of(value) is not None:
            raise ValueError(f"{self._steps.name}: {what} weights, which are for rows that are combined: give none, and multiply the rows")
