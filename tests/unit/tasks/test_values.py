"""Arrays and scalars of a test.py on their way to the launcher's parameters."""

import ml_dtypes
import numpy as np
import pytest

from kernelskill.errors import TaskError
from kernelskill.schema.task import ElementType, Parameter, Role, Signature
from kernelskill.tasks.arrays import expected_array, input_array
from kernelskill.tasks.binding import Declared, assign_roles, bind_inputs, bind_outputs, buffer_sizes
from kernelskill.tasks.dtypes import dtype_of, name_of
from kernelskill.tasks.scalars import convert_scalar

SIZES = {"float32": 4, "float64": 8, "int32": 4, "int64": 8, "uint8": 1, "uint32": 4, "float16": 2}
SIZES |= {"bfloat16": 2, "bool": 1, "complex64": 8, "int8": 1, "uint64": 8}


def pointer(name, dtype, *, lanes=1, const=False, c_name="", size=0):
    size = size or SIZES[dtype] * lanes
    element = ElementType(name=c_name or dtype, dtype=dtype, lanes=lanes, size_bytes=size)
    declared = f"{'const ' if const else ''}{c_name or dtype} *"
    return Parameter(name=name, kind="pointer", element=element, is_const=const, declared=declared)


def scalar(name, dtype, *, lanes=1):
    element = ElementType(name=dtype, dtype=dtype, lanes=lanes, size_bytes=SIZES[dtype] * lanes)
    return Parameter(name=name, kind="scalar", element=element, declared=dtype)


FLOATS = pointer("x", "float32", const=True, c_name="float")


def test_a_double_array_for_a_float_pointer_names_both_and_the_remedy():
    with pytest.raises(TaskError) as caught:
        input_array(FLOATS, np.zeros(3))
    assert caught.value.message == "x is float64, but the launcher's x is const float *"
    assert caught.value.remedy == "use .astype(np.float32)"


def test_non_contiguous_and_byte_swapped_arrays_are_put_right():
    array = np.arange(12, dtype=np.float32).reshape(3, 4).T
    assert input_array(FLOATS, array).flags.c_contiguous
    swapped = np.arange(3, dtype=">f4")
    np.testing.assert_array_equal(input_array(FLOATS, swapped), [0, 1, 2])


def test_contiguous_arrays_are_not_copied():
    array = np.zeros(5, np.float32)
    assert input_array(FLOATS, array) is array


def test_zero_dimensional_and_empty_arrays_keep_their_shape():
    assert input_array(FLOATS, np.float32(3).reshape(())).shape == ()
    assert input_array(FLOATS, np.zeros((0, 7), np.float32)).shape == (0, 7)


def test_lists_take_the_pointers_type():
    assert input_array(FLOATS, [1, 2.5]).dtype == np.float32
    with pytest.raises(TaskError, match="outside -128"):
        input_array(pointer("x", "int8"), [300])
    with pytest.raises(TaskError, match="x is float64"):
        input_array(pointer("x", "int32"), [1.5])


@pytest.mark.parametrize("value", [None, "text", [object()], {"a": 1}, np.array(["a"])])
def test_what_is_no_array_is_refused(value):
    with pytest.raises(TaskError, match="x is "):
        input_array(FLOATS, value)


def test_half_as_bits_and_bfloat16():
    half = pointer("h", "float16", c_name="__half")
    assert input_array(half, np.zeros(3, np.uint16)).dtype == np.float16
    brain = pointer("b", "bfloat16", c_name="__nv_bfloat16")
    assert input_array(brain, np.ones(3, ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    with pytest.raises(TaskError) as caught:
        input_array(brain, np.zeros(3, np.float32))
    assert caught.value.remedy == "use .astype(ml_dtypes.bfloat16)"


def test_vector_types_take_lanes_structs_and_pairs():
    vector = pointer("v", "float32", lanes=4, c_name="float4")
    assert input_array(vector, np.zeros((5, 4), np.float32)).shape == (5, 4)
    struct = np.zeros(5, [("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")])
    assert input_array(vector, struct).shape == (5, 4)
    with pytest.raises(TaskError, match="each float4 needs 4 values"):
        input_array(vector, np.zeros(3, np.float32))
    pair = pointer("c", "float32", lanes=2, c_name="float2")
    assert input_array(pair, np.zeros(5, np.complex64)).shape == (5, 2)


def test_void_pointers_take_any_bytes():
    raw = pointer("p", "uint8", c_name="void", size=1)
    assert input_array(raw, np.zeros(3, np.int64)).nbytes == 24


def test_objects_with_dlpack_or_array_are_taken():
    class Wrapped:
        def __init__(self, array):
            self.array = array
            self.dtype = array.dtype

        def __array__(self, dtype=None, copy=None):
            return self.array

    assert input_array(FLOATS, Wrapped(np.ones(3, np.float32))).sum() == 3
    with pytest.raises(TaskError, match="x is float64"):
        input_array(FLOATS, Wrapped(np.ones(3)))


def test_expected_values_may_be_wider_or_untyped_but_nothing_else():
    y = pointer("y", "float32", c_name="float")
    values, own = expected_array(y, np.zeros(3))
    assert (values.dtype, own) == (np.float64, np.float32)
    assert expected_array(y, [1, 2])[0].dtype == np.float32
    assert expected_array(y, np.float64(0.1))[0].dtype == np.float64
    with pytest.raises(TaskError, match="y is int64"):
        expected_array(y, np.zeros(3, np.int64))
    counts = pointer("n", "int32", c_name="int")
    assert expected_array(counts, np.int64(5))[0].dtype == np.int32
    with pytest.raises(TaskError, match="n is int64"):
        expected_array(counts, np.zeros(3, np.int64))


@pytest.mark.parametrize(
    ("dtype", "value", "stored"),
    [
        ("int32", 5, 5),
        ("int32", 5.0, 5),
        ("int32", np.int64(7), 7),
        ("int32", True, 1),
        ("uint8", "a", 97),
        ("bool", 1, True),
        ("float32", 1, 1.0),
        ("float32", np.float64(0.5), 0.5),
        ("float32", float("inf"), float("inf")),
        ("float64", 1e300, 1e300),
        ("float16", 1.0, "hex:003c"),
        ("bfloat16", 1.0, "hex:803f"),
        ("complex64", 1 + 0j, "hex:0000803f00000000"),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("int32", np.array(3), 3),
    ],
)
def test_scalars_are_converted_by_c_type(dtype, value, stored):
    found = convert_scalar(scalar("s", dtype), value)
    assert found == stored
    assert type(found) is type(stored)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int32", 2**31),
        ("int32", 1.5),
        ("uint32", -1),
        ("int32", "12"),
        ("int32", None),
        ("int32", [1]),
        ("int32", float("nan")),
        ("bool", 2),
        ("float32", 1e39),
        ("float32", 1j),
        ("float64", 10**400),
        ("float16", 1e6),
    ],
)
def test_scalars_outside_their_type_are_refused(dtype, value):
    with pytest.raises(TaskError, match=r"^s = .*the launcher's s is"):
        convert_scalar(scalar("s", dtype), value)


def test_vector_scalars_have_as_many_components():
    assert convert_scalar(scalar("v", "float32", lanes=2), (1, 0)) == "hex:0000803f00000000"
    with pytest.raises(TaskError, match="2 components"):
        convert_scalar(scalar("v", "float32", lanes=2), (1, 0, 3))


SAXPY = Signature(
    symbol="saxpy",
    parameters=(
        FLOATS,
        pointer("y", "float32", c_name="float"),
        pointer("tmp", "float32", c_name="float"),
        scalar("n", "int32"),
        Parameter(name="stream", kind="stream", element=None, declared="cudaStream_t"),
    ),
)
ONES = np.ones(4, np.float32)


def test_missing_and_extra_names_are_listed_with_the_nearest_spelling():
    with pytest.raises(TaskError, match=r"returns 'N', which .* and does not return 'n'; did you mean 'n'\?"):
        bind_inputs(SAXPY, {"x": ONES, "N": 4})
    with pytest.raises(TaskError, match="does not return 'n'"):
        bind_inputs(SAXPY, {"x": ONES})
    with pytest.raises(TaskError, match=r"returns 'yy'.*did you mean 'y'\?"):
        bind_outputs(SAXPY, {"yy": ONES})
    with pytest.raises(TaskError, match="not a dict"):
        bind_inputs(SAXPY, [ONES])
    with pytest.raises(TaskError, match="nothing to compare"):
        bind_outputs(SAXPY, {})


def test_a_const_pointer_is_no_output():
    with pytest.raises(TaskError, match="the launcher's x is const float"):
        bind_outputs(SAXPY, {"x": ONES})


def test_roles_and_sizes():
    inputs = bind_inputs(SAXPY, {"x": ONES, "y": ONES, "n": 4})
    outputs = bind_outputs(SAXPY, {"y": ONES})
    declared = Declared(scratch={"tmp": 8})
    roles = assign_roles(SAXPY, inputs.arrays, outputs, declared)
    assert roles == {"x": Role.INPUT, "y": Role.INOUT, "tmp": Role.SCRATCH}
    assert buffer_sizes(SAXPY, roles, inputs.arrays, outputs, declared) == {"x": 16, "y": 16, "tmp": 32}


def test_pointers_that_are_nothing_or_two_things_are_refused():
    outputs = bind_outputs(SAXPY, {"y": ONES})
    with pytest.raises(TaskError, match="'tmp' of saxpy is in neither"):
        assign_roles(SAXPY, {"x": ONES}, outputs, Declared())
    with pytest.raises(TaskError, match="'y' is in SCRATCH, but reference returns it"):
        assign_roles(SAXPY, {"x": ONES}, outputs, Declared(scratch={"tmp": 1, "y": 1}))
    with pytest.raises(TaskError, match="'y' is in INOUT, but make_inputs"):
        assign_roles(SAXPY, {"x": ONES}, outputs, Declared(scratch={"tmp": 1}, inout=("y",)))
    with pytest.raises(TaskError, match="no pointer of saxpy; did you mean 'tmp'"):
        assign_roles(SAXPY, {"x": ONES}, outputs, Declared(scratch={"temp": 1}))


def test_scratch_needs_a_size_and_inout_one_shape():
    outputs = bind_outputs(SAXPY, {"y": np.ones(5, np.float32)})
    roles = {"x": Role.INPUT, "y": Role.INOUT, "tmp": Role.SCRATCH}
    with pytest.raises(TaskError, match="4 elements in make_inputs and 5 in reference"):
        buffer_sizes(SAXPY, roles, {"x": ONES, "y": ONES}, outputs, Declared(scratch={"tmp": None}))
    with pytest.raises(TaskError, match="scratch pointer 'tmp' has no size"):
        buffer_sizes(SAXPY, roles | {"y": Role.OUTPUT}, {"x": ONES}, outputs, Declared(scratch={"tmp": None}))


def test_masks_must_be_bool_and_fit():
    found = bind_outputs(SAXPY, {"y": (ONES, np.array([True, False, True, True]))})["y"]
    assert found.mask is not None
    with pytest.raises(TaskError, match="mask of y is float32, not bool"):
        bind_outputs(SAXPY, {"y": (ONES, ONES)})
    with pytest.raises(TaskError, match="mask of y has shape"):
        bind_outputs(SAXPY, {"y": (ONES, np.ones(3, bool))})


@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "bool", np.dtype([("a", "f4", (2, 3)), ("b", "u2")])]
)
def test_type_names_are_read_back(dtype):
    kind = dtype_of(dtype) if isinstance(dtype, str) else dtype
    assert dtype_of(name_of(kind)) == kind


def test_unknown_type_names_are_refused():
    with pytest.raises(TaskError, match="unknown array type 'float33'"):
        dtype_of("float33")
