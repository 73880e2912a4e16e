from __future__ import annotations

import scripted_backend as scripted

from kernelskill.evaluation import calls
from kernelskill.evaluation.calls import Extent
from kernelskill.schema.task import Promise, Role

EXTENTS = {"x": Extent(size_bytes=40, element_bytes=4), "y": Extent(size_bytes=40, element_bytes=4)}
TASK = scripted.make_task(scripted.source("right"))


def with_parameter(name, **changes):
    signature = TASK.signature
    parameters = tuple(p.model_copy(update=changes) if p.name == name else p for p in signature.parameters)
    return TASK.model_copy(update={"signature": signature.model_copy(update={"parameters": parameters})})


def test_plain_gives_each_array_its_buffer():
    arrangement = calls.plain(EXTENTS, {"n": 10})
    assert arrangement.call.buffers == {"x": 40, "y": 40}
    assert arrangement.offset_of("y") == 0
    assert arrangement.call.scalars == {"n": 10}


def test_offset_moves_every_pointer_by_one_element_unless_promised():
    arrangement = calls.offset(TASK, EXTENTS, {"n": 10})
    assert arrangement.call.buffers == {"x": 44, "y": 44}
    assert [arrangement.offset_of(name) for name in "xy"] == [4, 4]
    promised = TASK.model_copy(update={"promise": frozenset({Promise.ALIGNED16})})
    assert calls.offset(promised, EXTENTS, {"n": 10}) is None


def test_aliased_shares_one_buffer_where_sizes_agree():
    arrangement = calls.aliased(EXTENTS, {"n": 10}, ("x", "y"))
    assert arrangement.call.buffers == {"x": 40}
    assert arrangement.buffer_of("y") == "x"
    assert calls.aliased({**EXTENTS, "y": Extent(size_bytes=4, element_bytes=4)}, {}, ("x", "y")) is None


def test_which_aliases_the_signature_permits():
    assert calls.permitted_aliases(TASK) == (("x", "y"),)
    assert calls.permitted_aliases(with_parameter("y", is_restrict=True)) == ()
    assert calls.permitted_aliases(with_parameter("x", is_const=False)) == ()
    assert calls.permitted_aliases(with_parameter("x", element=scripted.INT)) == ()
    assert calls.permitted_aliases(TASK.model_copy(update={"promise": frozenset({Promise.NO_ALIAS})})) == ()
    inout = TASK.model_copy(update={"roles": {"x": Role.INPUT, "y": Role.INOUT}})
    assert calls.permitted_aliases(inout) == ()


def test_padded_contents_are_written_once(tmp_path):
    source = tmp_path / "x.bin"
    source.write_bytes(bytes(range(40)))
    arrangement = calls.offset(TASK, EXTENTS, {"n": 10})
    files = calls.contents(arrangement, {"x": source}, {"x": 4, "y": 4}, tmp_path / "padded")
    assert files["x"].read_bytes() == bytes([calls.PAD_BYTE]) * 4 + bytes(range(40))
    again = calls.contents(arrangement, {"x": source}, {"x": 4, "y": 4}, tmp_path / "padded")
    assert again == files
    assert calls.contents(calls.plain(EXTENTS, {}), {"x": source}, {}, tmp_path) == {"x": source}
