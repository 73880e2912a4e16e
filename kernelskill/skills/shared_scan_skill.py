"""The skill of scans over shared arrays: one of integers, which is exact, and one of floating-point numbers."""

from __future__ import annotations

from collections.abc import Mapping

from kernelskill.schema.proposal import SkillParameter
from kernelskill.skills.scan_finder import find_scans
from kernelskill.skills.scan_items import item_counts, write_items
from kernelskill.skills.shared_scan_edits import write_scan
from kernelskill.skills.shared_scans import Scan
from kernelskill.skills.transformation import Rewrite, Site, SkillContext, SkillRefused
from kernelskill.source.definitions import KernelDef
from kernelskill.source.unit import SourceUnit


def scan_sites(unit: SourceUnit, kernel: KernelDef, context: SkillContext, *, of_floats: bool) -> list[Site]:
    """Offer the scans of a kernel.

    Args:
        unit: The file.
        kernel: The kernel.
        context: What may be known besides.
        of_floats: Whether the scans of floating-point numbers are meant, or those of integers.
    """
    sites = []
    for key, scan in _scans(unit, kernel, context, of_floats=of_floats):
        steps = (scan.threads * scan.share - 1).bit_length()
        reason = f"{steps} steps with barriers scan {scan.threads * scan.share} elements of {scan.array.name}"
        parameter = SkillParameter(
            name="items",
            values=item_counts(unit, kernel, scan, context),
            meaning="neighbouring elements that a thread takes",
        )
        sites.append(Site(key=key, kernel=kernel.name, reason=reason, parameters=(parameter,)))
    return sites


def scan_rewrite(
    unit: SourceUnit,
    site: Site,
    parameters: Mapping[str, str],
    context: SkillContext,
    *,
    of_floats: bool,
) -> Rewrite:
    """Write one scan anew."""
    kernel = unit.kernel(site.kernel)
    if kernel is None:
        raise SkillRefused(f"kernel {site.kernel!r} is gone")
    scans = dict(_scans(unit, kernel, context, of_floats=of_floats))
    if site.key not in scans:
        raise SkillRefused(f"the scan {site.key!r} is gone")
    items = int(parameters["items"])
    if items > 1:
        return write_items(unit, kernel, scans[site.key], context, items)
    return Rewrite(edits=write_scan(unit, kernel, scans[site.key], context).edits)


def _scans(
    unit: SourceUnit, kernel: KernelDef, context: SkillContext, *, of_floats: bool
) -> list[tuple[str, Scan]]:
    """Return the scans of one sort with their keys.

    Raises:
        SkillRefused: There is none.
    """
    found: list[tuple[str, Scan]] = []
    counts: dict[str, int] = {}
    for scan in find_scans(unit, kernel, context, of_floats=of_floats):
        counts[scan.array.name] = counts.get(scan.array.name, 0) + 1
        number = counts[scan.array.name]
        key = f"{kernel.name}/scan:{scan.array.name}" + (f"#{number}" if number > 1 else "")
        found.append((key, scan))
    return found
