"""`kernelskill ceilings`: what a GPU can do at best, measured once and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelskill.cli.progress import spinner

if TYPE_CHECKING:
    from kernelskill.schema.device import Gpu
    from kernelskill.session.ceilings import KnownCeilings


def ceilings(
    device: Annotated[str, typer.Option("--device", metavar="DEVICE", help="auto or cuda:N.")] = "auto",
    again: Annotated[bool, typer.Option("--again", help="Measure anew even where it is known.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the ceilings of a GPU: memory by mix of reads and writes, L2, arithmetic, atomics, launches.

    Takes some seconds, once a GPU and driver; rooflines use the measured figures from then on.
    """
    from kernelskill.session.ceilings import ceilings_of

    with spinner(f"measuring the ceilings of {device}", shown=not as_json):
        known = ceilings_of(device, again=again, report=lambda line: None)
    if as_json:
        typer.echo(known.model_dump_json(indent=1))
        return
    _print(known)


def _print(known: KnownCeilings) -> None:
    found = known.ceilings
    when = "measured just now" if known.fresh else "measured before, --again measures anew"
    typer.echo(f"{found.gpu}, driver {found.driver}: {when}")
    sheet = _data_sheet(known.data_sheet)
    for rate in found.rates:
        value = _value(rate.value, rate.unit)
        line = f"  {rate.name:<32} {value:>14}  +-{rate.spread / 2:.1%}"
        if sheet.get(rate.name):
            line += f"  {rate.value / sheet[rate.name]:.0%} of the data sheet"
        typer.echo(f"{line}  ({rate.meaning})")
    for missing in found.lacking:
        typer.echo(f"  not measured: {missing}")


def _value(value: float, unit: str) -> str:
    from kernelskill.report import figures

    if unit == "s":
        return figures.milliseconds(value * 1e3)
    words = {"byte/s": "B", "flop/s": "FLOP", "op/s": "op"}
    return figures.per_second(value, words[unit])


def _data_sheet(gpu: Gpu) -> dict[str, float]:
    """Return what the vendor states, by the names of the measured rates."""
    from kernelskill.hardware import ceilings as names

    streams = dict.fromkeys(
        ("stream 1:0", "stream 3:1", "stream 2:1", names.STREAM_COPY, "stream 1:2", "stream 0:1"),
        gpu.dram_bytes_per_s,
    )
    return streams | {
        names.FMA_FP32: gpu.fp32_flops_per_s,
        names.FMA_FP64: gpu.fp64_flops_per_s,
        names.WARP_PRODUCTS: gpu.tensor_fp16_flops_per_s,
        names.GROUP_PRODUCTS: gpu.tensor_fp16_flops_per_s,
    }
