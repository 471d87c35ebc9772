"""Other systems' optimizers by their names there."""

import pytest

import embertable as et


def test_a_variant_is_its_rule():
    assert et.Optimizer("torch.SGD", 0.5) == et.SGD(0.5)
    assert et.optimizer_variants()["torch.SGD"] == ("sgd", "the same")


@pytest.mark.parametrize("name", et.optimizer_variants())
def test_every_variant_can_be_made(name):
    optimizer = et.Optimizer(name, 0.5)
    assert optimizer.rule == et.optimizer_variants()[name][0]
    assert optimizer.rule in et.optimizer_rules()


def test_settings_win():
    optimizer = et.Optimizer("keras.Adagrad", 0.5, initial_accumulator_value=2)
    assert optimizer.parameters["initial_accumulator_value"] == 2
