import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.isolation.channel import MAX_MESSAGE_BYTES, Channel, ChannelClosed

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture
def ends():
    read_a, write_b = os.pipe()
    read_b, write_a = os.pipe()
    return Channel(read_a, write_a), Channel(read_b, write_b)


@given(messages=st.lists(st.dictionaries(st.text(), json_values, max_size=3), max_size=4))
def test_messages_arrive_whole_and_in_order(messages):
    read, write = os.pipe()
    channel = Channel(read, write)
    try:
        for message in messages:
            channel.send(message)
        assert [channel.receive() for _ in messages] == messages
    finally:
        channel.close()


def test_waiting_has_an_end(ends):
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        ends[0].receive(deadline=time.monotonic() + 0.1)
    with pytest.raises(TimeoutError):
        ends[0].send({"much": "x" * 1_000_000}, deadline=time.monotonic() + 0.1)
    assert time.monotonic() - started < 5
    for end in ends:
        end.close()


def test_the_other_end_closing_is_noticed(ends):
    ends[1].close()
    with pytest.raises(ChannelClosed):
        ends[0].receive()
    with pytest.raises(ChannelClosed):
        ends[0].send({})
    ends[0].close()


@pytest.mark.parametrize(
    "frame",
    [b"\x02\x00\x00\x00[]", b"\x03\x00\x00\x00{{{", b"\xff\xff\xff\xff", b"\x05\x00\x00\x00{}"],
    ids=["no object", "no JSON", "too long", "cut off"],
)
def test_what_is_no_message_is_refused(frame):
    read, write = os.pipe()
    os.write(write, frame)
    os.close(write)
    with pytest.raises(ChannelClosed):
        Channel(read, os.dup(read)).receive()
    os.close(read)


def test_a_message_too_large_is_refused_before_it_is_sent(ends):
    with pytest.raises(ValueError, match="larger"):
        ends[0].send({"x": "x" * MAX_MESSAGE_BYTES})
    for end in ends:
        end.close()
