"""The clocks of a GPU and what holds them down, as the driver's management library or nvidia-smi tells."""

from __future__ import annotations

from kernelskill.backends.cuda.detect import ask_nvidia_smi
from kernelskill.backends.cuda.nvml import gpu_state
from kernelskill.schema.device import ClockState

_CLOCK = "clocks.current.sm"
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""The name of today's drivers, and that of older ones."""
_MEANINGS = {
    0x4: "its power limit",
    0x8: "the hardware",
    0x20: "its temperature",
    0x40: "its temperature",
    0x80: "the power supply",
}
"""Bits of `nvmlClocksEventReasons` that mean less speed than the work could use; idle is none of them."""


def read_clocks(uuid: str) -> ClockState:
    """Return the SM clock of this moment and what slows it down."""
    state = gpu_state(uuid)
    if state is not None:
        return ClockState(sm_mhz=state.sm_mhz, slowed_by=_slowed(state.slowed_bits))
    for reasons in _REASONS:
        said = ask_nvidia_smi(uuid, (_CLOCK, reasons))
        if said:
            return parse_clocks(said.get(_CLOCK, ""), said.get(reasons, ""))
    return ClockState()


def parse_clocks(clock: str, reasons: str) -> ClockState:
    """Read a clock in MHz and the bits of the reasons, as nvidia-smi writes them; either may be missing."""
    try:
        bits = int(reasons, 16)
    except ValueError:
        bits = 0
    try:
        mhz = float(clock)
    except ValueError:
        mhz = None
    return ClockState(sm_mhz=mhz, slowed_by=_slowed(bits))


def _slowed(bits: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words for bit, words in _MEANINGS.items() if bits & bit))
