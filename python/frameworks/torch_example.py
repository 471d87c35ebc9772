import io

import numpy as np
import torch

import embertable as et

users = et.TableConfig(vocabulary_size=1000, dim=16, name="user")
films = et.TableConfig(vocabulary_size=500, dim=16, combiner="mean", name="film")
engine = et.Embedding({"user": et.FeatureConfig(users), "watched": et.FeatureConfig(films)}, et.Adagrad(0.1),
                      et.EngineStrategy(), seed=1)
torch.manual_seed(1)
head = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(head.parameters(), 0.01)
draw = np.random.default_rng(1)


def batch(size=256):
    """Users, the films that each has watched, and whether they come back: those with an even number do."""
    ids = torch.from_numpy(draw.integers(1000, size=size))
    lengths = draw.integers(1, 6, size=size)
    offsets = torch.from_numpy(np.cumsum(lengths) - lengths)  # as torch.nn.EmbeddingBag takes them
    watched = et.RaggedIds.from_offsets(torch.from_numpy(draw.integers(500, size=lengths.sum())), offsets)
    return {"user": ids, "watched": watched}, (ids % 2 == 0).float()


def step():
    features, labels = batch()
    engine.enqueue(features)
    rows = {name: torch.from_numpy(array).requires_grad_() for name, array in engine.dequeue().items()}
    logits = head(torch.cat([rows["user"], rows["watched"]], dim=1)).squeeze(1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    engine.apply_gradients({name: leaf.grad for name, leaf in rows.items()})
    return loss.item()


losses = [step() for _ in range(300)]
print(f"loss {np.mean(losses[:20]):.3f}, after 300 steps {np.mean(losses[-20:]):.3f}")

# Tables, slots and torch's own state, in one commit.
state = io.BytesIO()
torch.save({"head": head.state_dict(), "optimizer": optimizer.state_dict()}, state)
engine.save("run", et.CallerState(blobs={"torch": state.getvalue()}))

# Another process goes on from there.
report = engine.restore("run")
saved = torch.load(io.BytesIO(report.caller.blobs["torch"]))
head.load_state_dict(saved["head"])
optimizer.load_state_dict(saved["optimizer"])
print(f"goes on after step {report.step} with loss {step():.3f}")

# Lookups without training: of the engine as it is, or of what is saved.
features, labels = batch()
serving = et.ServingEmbedding.open("run")
with torch.no_grad():
    served = {name: torch.from_numpy(array) for name, array in serving(features).items()}
    hits = (head(torch.cat([served["user"], served["watched"]], dim=1)).squeeze(1) > 0) == (labels > 0)
print(f"right for {hits.float().mean().item():.0%} of new samples")
