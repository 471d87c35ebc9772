"""A variable in components: its shape, slices, changes and lookups."""

import numpy as np

import embertable as et

variables = [et.Variable(np.zeros((rows, 100), np.float32), dtype=np.float32) for rows in (10, 15, 5)]
sharded_variable = et.ShardedVariable(variables)
assert sharded_variable.shape == (30, 100) and sharded_variable.variables[1] is variables[1]


class Model:
    def __init__(self) -> None:
        self.sharded_variable = et.ShardedVariable([et.Variable([3.0]), et.Variable([2.0])])

    def fn(self, ids: int) -> float:
        return float(et.embedding_lookup(self.sharded_variable, ids))


assert Model().fn(1) == 2.0

v = et.ShardedVariable([et.Variable([0, 1, 2]), et.Variable([3, 4, 5]), et.Variable([6, 7, 8, 9])])
assert v[:].tolist() == list(range(10))
assert v[2:8:3].tolist() == [2, 5]
assert v[9:3:-2].tolist() == [9, 7, 5]
v.scatter_add([0, 9], [10, 10]).assign_sub(np.ones(10, np.int32))
assert (v + 1)[:].tolist() == [10, 1, 2, 3, 4, 5, 6, 7, 8, 19]
print(v)
