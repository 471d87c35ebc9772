"""Training and evaluation on two replicas, with the data set and the step of each replica as functions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from embertable import tpu_embedding as tpu

SAMPLES = 4  # of one replica
Batch = tuple[dict[str, npt.NDArray[np.int64]], npt.NDArray[np.float32]]

strategy = tpu.TPUStrategy(replicas_per_host=2, threads=1)
with strategy.scope():
    embedding = tpu.TPUEmbedding(
        feature_config={"film": tpu.FeatureConfig(tpu.TableConfig(vocabulary_size=8, dim=4, combiner="sum", name="films"))},
        optimizer=tpu.Adagrad(0.5))


def dataset_fn(context: tpu.InputContext) -> Iterator[Batch]:
    """Batches of one replica: the label of a film is 1 for odd numbers."""
    size = context.get_per_replica_batch_size(SAMPLES * context.num_replicas_in_sync)
    random = np.random.default_rng(context.input_pipeline_id)
    for _ in range(80):
        films = random.integers(0, 8, size)
        yield {"film": films}, (films % 2).astype(np.float32)


distributed_dataset = strategy.distribute_datasets_from_function(
    dataset_fn, options=tpu.InputOptions(experimental_fetch_to_device=False))
dataset_iterator = iter(distributed_dataset)


def predictions(activations: Any) -> Any:
    return 1 / (1 + np.exp(-activations["film"].sum(1)))


def training_step() -> float:
    def tpu_step(labels: npt.NDArray[np.float32]) -> float:
        activations = embedding.dequeue()
        errors = predictions(activations) - labels
        embedding.apply_gradients({"film": np.repeat(errors[:, None], 4, 1) / labels.size})
        return float(np.abs(errors).mean())

    embedding_features, labels = next(dataset_iterator)
    embedding.enqueue(embedding_features, training=True)
    return float(strategy.reduce("mean", strategy.run(tpu_step, args=(labels,))))


def evaluation_step() -> float:
    def tpu_step(labels: npt.NDArray[np.float32]) -> float:
        return float(np.abs(predictions(embedding.dequeue()) - labels).mean())

    embedding_features, labels = next(dataset_iterator)
    embedding.enqueue(embedding_features, training=False)
    return float(strategy.reduce("mean", strategy.run(tpu_step, args=(labels,))))


before = evaluation_step()
for _ in range(30):
    training_step()
after = evaluation_step()
print(f"mean error before {before:.3f}, after {after:.3f}")
assert embedding.step == 30 and after < before / 2
