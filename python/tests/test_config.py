import copy
import pickle
import weakref

import numpy as np
import pytest

import embertable as et


def test_fields_and_defaults():
    table = et.TableConfig(10, 4)
    assert (table.vocabulary_size, table.dim, table.initializer, table.optimizer, table.combiner, table.name) == (
        10, 4, None, None, "mean", None)
    feature = et.FeatureConfig(table)
    assert feature.table is table
    assert (feature.max_sequence_length, feature.validate_weights_and_indices, feature.output_shape, feature.name) == (
        0, True, None, None)
    assert et.FeatureConfig(table, output_shape=[2, None]).output_shape == (2, None)


@pytest.mark.parametrize("changes, error, text", [
    ({"vocabulary_size": 0}, ValueError, "vocabulary_size.*0"),
    ({"vocabulary_size": 1.5}, TypeError, "vocabulary_size.*integer.*float"),
    ({"vocabulary_size": True}, TypeError, "vocabulary_size.*bool"),
    ({"vocabulary_size": "9"}, TypeError, "vocabulary_size.*str"),
    ({"vocabulary_size": 2**70}, ValueError, "vocabulary_size.*64 bits"),
    ({"vocabulary_size": 10**5000}, ValueError, "vocabulary_size.*64 bits.*digits"),
    ({"vocabulary_size": np.array([9])}, TypeError, r"vocabulary_size must be an integer, got ndarray of shape \(1,\)"),
    ({"dim": 4097}, ValueError, "table 'ads'.*dim.*4097"),
    ({"dim": 2**32 + 1}, ValueError, "dim.*32 bits"),
    ({"combiner": "max"}, ValueError, "max"),
    ({"combiner": None}, ValueError, "combiner"),
    ({"optimizer": 0.1}, TypeError, "optimizer.*Optimizer.*float"),
    ({"initializer": "zeros"}, TypeError, "initializer.*Initializer.*str"),
])
def test_a_table_says_which_field_breaks_which_rule(changes, error, text):
    with pytest.raises(error, match=text):
        et.TableConfig(**{"vocabulary_size": 9, "dim": 4, "name": "ads", **changes})


@pytest.mark.parametrize("changes, error, text", [
    ({"table": None}, ValueError, "table"),
    ({"table": 5}, TypeError, "table.*TableConfig.*int"),
    ({"max_sequence_length": -1}, ValueError, "max_sequence_length.*-1"),
    ({"output_shape": (-3,)}, ValueError, "-3"),
    ({"output_shape": "ab"}, TypeError, "output_shape.*str"),
    ({"output_shape": b"12"}, TypeError, "output_shape.*bytes"),
])
def test_a_feature_says_which_field_breaks_which_rule(changes, error, text):
    with pytest.raises(error, match=text):
        et.FeatureConfig(**{"table": et.TableConfig(9, 4), **changes})


def test_numbers_of_numpy_are_numbers():
    table = et.TableConfig(np.int64(9), np.int32(4), optimizer=et.SGD(np.float32(0.5)))
    assert (table.vocabulary_size, table.dim, table.optimizer.learning_rate) == (9, 4, 0.5)


def test_optimizers():
    assert {"sgd", "adagrad", "rowwise_adagrad"} <= set(et.optimizer_rules())
    assert et.Adagrad(0.5) == et.Optimizer("adagrad", 0.5)
    assert et.Adagrad(0.5) != et.Adagrad(0.25) and et.Adagrad(0.5) != 5
    assert et.Adagrad(0.5).parameters == {"initial_accumulator_value": 0.1}
    assert repr(et.SGD(0.5)) == "sgd(learning_rate=0.5)"
    assert repr(et.SGD(lambda: 1.0)) == "sgd(learning_rate=dynamic)"
    assert hash(et.SGD(0.5)) == hash(et.SGD(0.5))

    def rate():
        return 0.5

    assert et.SGD(rate) == et.SGD(rate) and et.SGD(rate).learning_rate is rate
    assert et.SGD(rate) != et.SGD(lambda: 0.5)


@pytest.mark.parametrize("given, kept", [
    (1, (-1, 1)), ((-1, 1), (-1, 1)), ((None, 1), (None, 1)), ([-2, None], (-2, None)),
])
def test_a_clipvalue_is_a_number_or_a_pair(given, kept):
    for make in (et.SGD, et.Adagrad, et.RowwiseAdagrad):
        assert make(0.1, clipvalue=given).options == {"clipvalue": kept}


@pytest.mark.parametrize("clipvalue", [0, 1, (None, 1), (None, None)])
def test_a_clipvalue_needs_accumulation(clipvalue):
    with pytest.raises(ValueError, match="use_gradient_accumulation.*clipvalue"):
        et.SGD(0.1, clipvalue=clipvalue, use_gradient_accumulation=False)


def test_options_are_equal_by_value_and_functions_by_identity():
    def slots(table, slot, row_wise):
        return et.Initializer.zeros()

    options = dict(clipvalue=(None, 1), clip_weight_min=-1, clip_weight_max=2, weight_decay_factor=0.5,
                   multiply_weight_decay_factor_by_learning_rate=True, low_dimensional_packing_status=True,
                   slot_variable_creation_fn=slots, step_counter=rate_of_a_module)
    one = et.Adagrad(0.5, **options)
    assert one.options == options and one == et.Adagrad(0.5, **options)
    for name in options:
        assert one != et.Adagrad(0.5, **{**options, name: None}), name
    assert one != et.Adagrad(0.5, **{**options, "slot_variable_creation_fn": lambda table, slot, row_wise: None})
    assert repr(et.SGD(0.5, weight_decay_factor=0.25, use_gradient_accumulation=False)) == (
        "sgd(learning_rate=0.5, weight_decay_factor=0.25, use_gradient_accumulation=false)")
    assert et.SGD(0.5, step_counter=3).options == {"step_counter": 3}


@pytest.mark.parametrize("options, error, text", [
    ({"slot_variable_creation_fn": 5}, ValueError, "slot_variable_creation_fn.*callable.*int"),
    ({"clip_weight_min": 1, "clip_weight_max": 0}, ValueError, "clip_weight_min must be <= clip_weight_max"),
    ({"clipvalue": (1, 2, 3)}, ValueError, "clipvalue.*pair"),
    ({"clipvalue": -1}, ValueError, "clip_gradient_min must be <="),
    ({"weight_decay_factor": -1}, ValueError, "weight_decay_factor.*-1"),
    ({"use_gradient_accumulation": 1}, TypeError, "use_gradient_accumulation.*bool.*int"),
    ({"clip_weight_max": "1"}, TypeError, "clip_weight_max.*number.*str"),
    ({"step_counter": float("inf")}, ValueError, "step_counter must be finite"),
])
def test_an_option_says_what_is_wrong(options, error, text):
    with pytest.raises(error, match=text):
        et.SGD(0.1, **options)


def test_slots_start_as_the_function_says():
    asked = []

    def slots(table, slot, row_wise):
        asked.append((table.name, slot, row_wise))
        return et.Initializer.constant(0.5)

    table = et.TableConfig(5, 2, optimizer=et.Adagrad(0.1, slot_variable_creation_fn=slots), name="t")
    embedding = et.Embedding(et.FeatureConfig(table), strategy=et.EngineStrategy())
    embedding.build(2)
    assert asked == [("t", "accumulators", False)]
    assert embedding.read_rows("t/accumulators", range(5)).tolist() == [[0.5, 0.5]] * 5
    wrong = et.TableConfig(5, 2, optimizer=et.Adagrad(0.1, slot_variable_creation_fn=lambda *_: 7), name="t")
    with pytest.raises(TypeError, match="slot_variable_creation_fn.*Initializer.*int"):
        et.Embedding(et.FeatureConfig(wrong), strategy=et.EngineStrategy())


def test_options_work_in_a_step():
    table = et.TableConfig(3, 1, et.Initializer.constant(8), name="t")
    embedding = et.Embedding(et.FeatureConfig(table),
                             et.SGD(1, weight_decay_factor=0.5, use_gradient_accumulation=False),
                             et.EngineStrategy())
    embedding.enqueue(np.array([1, 1, 1]))
    embedding.dequeue()
    embedding.apply_gradients(np.ones((3, 1), np.float32))
    assert embedding.read_rows("t", [0, 1]).tolist() == [[8], [-0.75]]


def test_gradients_that_are_no_numbers_are_refused_unless_they_are_allowed():
    def embedding(**options):
        table = et.TableConfig(3, 2, et.Initializer.zeros(), name="t")
        made = et.Embedding(et.FeatureConfig(table), et.SGD(1), et.EngineStrategy(), **options)
        made.enqueue(np.array([1, 2]))
        made.dequeue()
        return made

    gradients = np.array([[1, 1], [1, np.nan]], np.float32)
    strict = embedding()
    with pytest.raises(et.DataError, match="sample 1.*nan.*row 2 of table 't'"):
        strict.apply_gradients(gradients)
    strict.apply_gradients(np.ones((2, 2), np.float32))
    assert strict.step == 1
    loose = embedding(gradient_policy="allow")
    loose.apply_gradients(gradients)
    assert np.isnan(loose.read_rows("t", [2])).tolist() == [[False, True]]
    with pytest.raises(ValueError, match="gradient_policy.*'drop'"):
        embedding(gradient_policy="drop")


def test_an_optimizer_with_another_rate_keeps_its_parameters_and_options():
    count = lambda: 3.0
    one = et.Optimizer("adamw", 0.1, beta1=0.5, clipvalue=2.0, clip_weight_max=1.0, step_counter=count)
    other = one.with_learning_rate(0.2)
    assert (other.learning_rate, other.parameters, other.options) == (0.2, one.parameters, one.options)
    assert one.learning_rate == 0.1 and other.with_learning_rate(0.1) == one and et.Adagrad(1.0).with_learning_rate(2).rule == "adagrad"
    with pytest.raises(ValueError, match="adamw: learning_rate must be >= 0, got -1"):
        one.with_learning_rate(-1)


def test_a_rate_function_may_take_the_step():
    asked = []

    class Halved:
        def __call__(self, step):
            asked.append(step)
            return 0.5 ** step

    def with_default(step=7):
        return step

    for rate, wanted in ((Halved(), -0.75), (lambda step: 1.0 * step, -3), (with_default, -14)):
        table = et.TableConfig(2, 1, et.Initializer.zeros(), name="t")
        embedding = et.Embedding(et.FeatureConfig(table), et.SGD(rate), et.EngineStrategy())
        for _ in range(2):
            embedding.enqueue(np.array([1]))
            embedding.dequeue()
            embedding.apply_gradients(np.ones((1, 1), np.float32))
        assert embedding.read_rows("t", [1]).tolist() == [[wanted]]
    assert asked == [1, 2]


def test_names_of_optimizers_are_known_in_any_case():
    with pytest.warns(UserWarning, match="'Adam' is the rule adam, whose formula is another than that of .* torch.Adam"):
        assert et.Optimizer("Adam", 0.1).rule == "adam"
    with pytest.raises(TypeError, match=r"betas must be given as two numbers, beta1 and beta2, got \(0.9, 0.99\)"):
        et.Optimizer("torch.Adam", 0.1, betas=(0.9, 0.99))
    with pytest.raises(TypeError, match="^Optimizer: there is no argument 'lr'; it is called learning_rate here$"):
        et.Optimizer("torch.Adagrad", lr=0.1)
    with pytest.raises(ValueError, match="^adamw: there is no parameter 'lr'; it is called learning_rate here$"):
        et.Optimizer("torch.Adam", 0.1, lr=0.1)
    for rate in ([], [None]):
        with pytest.raises(TypeError, match="^Optimizer: learning_rate must be a number or a function, got None$"):
            et.Optimizer("torch.Adagrad", *rate)
    assert et.Optimizer("ADAGRAD", 0.1) == et.Optimizer("adagrad", 0.1)
    assert et.Optimizer("Torch.adam", 0.1) == et.Optimizer("torch.Adam", 0.1)
    with pytest.raises(ValueError, match="'Adagard' is not known; the nearest is 'adagrad'"):
        et.Optimizer("Adagard", 0.1)


def test_the_rule_none_gives_ids_and_sums():
    table = et.TableConfig(5, 2, et.Initializer.zeros(), name="t")
    embedding = et.Embedding(et.FeatureConfig(table), et.Optimizer("none", 0), et.EngineStrategy())
    embedding.enqueue(np.array([4, 1, 4]))
    embedding.dequeue()
    embedding.apply_gradients(np.array([[1, 2], [3, 4], [5, 6]], np.float32))
    ids, sums = embedding.gradient_sums("t")
    assert ids.tolist() == [1, 4] and sums.tolist() == [[3, 4], [6, 8]]


@pytest.mark.parametrize("arguments, error, text", [
    (("adagard", 0.1), ValueError, "adagrad"),
    (("sgd", -1), ValueError, "-1"),
    (("sgd", float("nan")), ValueError, "nan"),
    (("sgd", "0.1"), TypeError, "learning_rate.*number.*str"),
    (("sgd", None), TypeError, "learning_rate.*None"),
    (("sgd", np.array([0.1])), TypeError, r"^learning_rate must be a number, got ndarray of shape \(1,\)$"),
    (("sgd", 1j), TypeError, "^learning_rate must be a number, got complex$"),
    (("sgd", 10**400), ValueError, "^learning_rate must fit into 64 bits, got a larger int$"),
])
def test_an_optimizer_says_what_is_wrong(arguments, error, text):
    with pytest.raises(error, match=text):
        et.Optimizer(*arguments)


def test_an_unknown_parameter_names_the_nearest():
    with pytest.raises(ValueError, match="epsilon"):
        et.Optimizer("rowwise_adagrad", 0.1, epsylon=1)


def test_initializers():
    table = et.TableConfig(3, 2, et.Initializer.values([[1, 2], [3, 4], [5, 6]]), name="t")
    embedding = et.Embedding(et.FeatureConfig(table))
    assert embedding.embedding_tables()[table].tolist() == [[1, 2], [3, 4], [5, 6]]
    assert repr(et.Initializer.truncated_normal(0, 0.25)) == "truncated_normal(mean=0, stddev=0.25)"
    with pytest.raises(ValueError):
        et.Initializer.uniform(1, 1)
    with pytest.raises(ValueError, match=r"value must be in the range of float32, got 1e\+300"):
        et.Initializer.constant(1e300)
    assert repr(et.Initializer.constant(float("inf"))) == "constant(inf)"


def test_an_initializer_of_another_shape_is_refused():
    wrong = et.Initializer.function(lambda rows: np.zeros((rows.rows, rows.dim + 1)))
    with pytest.raises(ValueError, match=r"\(5, 2\).*\(5, 3\)"):
        et.Embedding(et.FeatureConfig(et.TableConfig(5, 2, wrong))).build()


def rate_of_a_module():
    return 0.5


@pytest.mark.parametrize("value", [
    et.SGD(0.5), et.RowwiseAdagrad(rate_of_a_module, epsilon=1e-3), et.Optimizer("adagrad", 0.1),
    et.SGD(0.5, clipvalue=(None, 1), step_counter=rate_of_a_module, use_gradient_accumulation=True),
    et.Initializer.zeros(), et.Initializer.uniform(-1, 1, 7), et.Initializer.values(np.eye(2, dtype=np.float32)),
    et.TableConfig(9, 4, et.Initializer.constant(2), et.SGD(0.5), "sum", "ads"),
    et.FeatureConfig(et.TableConfig(9, 4), 3, False, (2, None), "seen"),
])
def test_configurations_can_be_pickled_and_copied(value):
    for other in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert type(other) is type(value) and repr(other) == repr(value)


def test_a_replicated_table_stays_so_when_it_is_pickled():
    assert not et.TableConfig(9, 4).replicated
    assert pickle.loads(pickle.dumps(et.TableConfig(9, 4, replicated=True))).replicated


def test_pickled_features_go_on_sharing_their_table():
    table = et.TableConfig(9, 4)
    one, two = pickle.loads(pickle.dumps([et.FeatureConfig(table), et.FeatureConfig(table)]))
    assert one.table is two.table


def test_strategies():
    strategy = et.EngineStrategy(2, 3, sharding="mod")
    assert (strategy.hosts, strategy.replicas_per_host, strategy.replicas) == (2, 3, 6)
    for changes, text in (({"hosts": 0}, "hosts.*0"), ({"sharding": "rows"}, "rows"), ({"timeout": 0}, "timeout"),
                          ({"threads": 0}, "threads|1 <= ")):
        with pytest.raises(ValueError, match=text):
            et.EngineStrategy(**changes)


@pytest.mark.parametrize("config", [et.TableConfig(1, 1), et.FeatureConfig(et.TableConfig(1, 1)), et.SGD(0.1),
                                    et.Initializer.zeros(), et.IdMap.hashed("integer", 2)])
@pytest.mark.parametrize("state", [(), (1,), ("sgd",), b"", None, ("zeros", 1)])
def test_a_state_that_is_none_of_its_class_is_refused(config, state):
    with pytest.raises(Exception):
        type(config).__new__(type(config)).__setstate__(state)


@pytest.mark.parametrize("optimizer", [et.Adagrad(0.1), et.Optimizer("adagrad", 0.1), et.Optimizer("adagrad", 0.1).with_learning_rate(0.2)])
def test_an_optimizer_does_not_change(optimizer):
    before = repr(optimizer)
    for name, text in (("initial_accumulator_value", "make one with another initial_accumulator_value$"), ("clipvalue", "another clipvalue$"),
                       ("rule", "another rule$"), ("learning_rate", "with_learning_rate makes one with another rate$"),
                       ("initial_acumulator_value", "has no 'initial_acumulator_value' to set, and does not change$")):
        with pytest.raises(AttributeError, match=text):
            setattr(optimizer, name, 0.5)
    assert repr(optimizer) == before and optimizer.initial_accumulator_value == 0.1
    assert {"initial_accumulator_value", "clipvalue", "learning_rate", "with_learning_rate"} <= set(dir(optimizer))


class NotedAdagrad(et.Adagrad):
    def __init__(self, note):
        super().__init__(0.1)
        self.note = note


def test_a_subclass_of_an_optimizer_keeps_what_it_adds():
    noted = NotedAdagrad("mine")
    noted.note = "other"
    assert noted.note == "other" and et.Embedding(et.FeatureConfig(et.TableConfig(4, 2)), noted) is not None
    with pytest.raises(AttributeError, match="does not change"):
        noted.initial_accumulator_value = 0.5
    assert pickle.loads(pickle.dumps(noted)) == noted == copy.deepcopy(noted)


def test_assignments_take_float64():
    values = np.array([0.1, 2.0])
    for variable in (et.Variable([1.0, 1.0]), et.ShardedVariable([et.Variable([1.0]), et.Variable([1.0])])):
        assert variable.assign(values).numpy().tolist() == values.astype(np.float32).tolist()
        variable.assign_add(values)
        variable.assign_sub(values[::-1].copy()[::-1])
        assert np.allclose(variable.numpy(), values)
        with pytest.raises(ValueError, match="got int64"):
            variable.assign(np.array([1, 2]))
    with pytest.raises(ValueError, match="holds int32.*got float64"):
        et.Variable([1, 2]).assign(values)


def test_classes_of_optimizers_keep_attributes_of_their_own_and_weak_references():
    class Noted(et.SGD):
        def __init__(self):
            self.note = 1
            super().__init__(0.1)
            self.other = 2

    optimizer = Noted()
    assert (optimizer.note, optimizer.other) == (1, 2)
    assert weakref.ref(optimizer)() is optimizer
    plain = et.SGD(0.1)
    assert weakref.ref(plain)() is plain
