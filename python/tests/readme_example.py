import numpy as np

import embertable as et

films = et.TableConfig(vocabulary_size=1000, dim=8, name="films")
engine = et.Embedding({"watched": et.FeatureConfig(films)}, et.Adagrad(0.1), et.EngineStrategy())
batch = {"watched": et.RaggedIds.from_rows([[3, 14], [15, 9, 26]])}
for step in range(100):
    engine.enqueue(batch)
    activations = engine.dequeue()  # {"watched": float32 array [2, 8]}
    engine.apply_gradients({"watched": activations["watched"] - 1})  # of the loss sum((activation - 1)^2) / 2
engine.save("run")  # step 100, which a run has once: a second program needs another folder
serving = et.ServingEmbedding.open("run")
print(np.round(serving(batch)["watched"], 1))  # close to 1
