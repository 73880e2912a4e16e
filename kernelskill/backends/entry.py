"""The one exported function through which every host object is entered, whatever its launcher's linkage.

A generated file includes the candidate's main file, so its text is never touched, and adds

    extern "C" RESULT kernelskill_entry(PARAMETERS) { return launcher(...); }

with result and parameters taken from the launcher's own type. Whoever loads `host.so` looks up
`ENTRY_SYMBOL` and calls it with the C ABI of `Signature.parameters`, in order; the candidate's own
symbol may not be exported at all.
"""

from __future__ import annotations

from kernelskill.errors import TaskError
from kernelskill.schema.candidate import Candidate
from kernelskill.schema.task import Signature

ENTRY_SYMBOL = "kernelskill_entry"
ENTRY_FILE = "entry.cu"
"""Name of the generated file; it lies beside the folder of the candidate's files."""
SOURCES = "sources"
"""Folder of the candidate's files; paths in messages are relative to it."""

_TYPES = """\
namespace kernelskill_entry_types {
template <class... ks_p> struct ks_list {};
template <int ks_n, class ks_l> struct ks_nth;
template <class ks_h, class... ks_t> struct ks_nth<0, ks_list<ks_h, ks_t...>> { using ks_type = ks_h; };
template <int ks_n, class ks_h, class... ks_t>
struct ks_nth<ks_n, ks_list<ks_h, ks_t...>> { using ks_type = typename ks_nth<ks_n - 1, ks_list<ks_t...>>::ks_type; };
template <class ks_f> struct ks_function;
template <class ks_r, class... ks_p>
struct ks_function<ks_r(ks_p...)> { using ks_result = ks_r; using ks_parameters = ks_list<ks_p...>; };
#if defined(__cpp_noexcept_function_type)
template <class ks_r, class... ks_p>
struct ks_function<ks_r(ks_p...) noexcept> { using ks_result = ks_r; using ks_parameters = ks_list<ks_p...>; };
#endif
}
"""
"""Stands behind the user's text, where any short name may be a macro."""


def entry_symbol(signature: Signature) -> str:
    """Return the symbol to call in `host.so`; the same for every signature."""
    del signature
    return ENTRY_SYMBOL


def include_line(candidate: Candidate) -> str:
    """Return the line that includes the candidate's main file from beside the sources' folder.

    Raises:
        TaskError: The file's name cannot stand in an `#include`.
    """
    if any(letter in candidate.main for letter in '"\\\n\r'):
        raise TaskError(
            f"the file name {candidate.main!r} holds a quote, a backslash or a line break",
            remedy="rename the file",
        )
    return f'#include "{SOURCES}/{candidate.main}"\n'


def entry_source(candidate: Candidate, signature: Signature) -> str:
    """Return the text of the generated file.

    Raises:
        TaskError: The main file's name cannot stand in an `#include`.
    """
    name = signature.symbol
    function = f"kernelskill_entry_types::ks_function<decltype({name})>"
    numbers = range(len(signature.parameters))
    parameters = ", ".join(
        f"kernelskill_entry_types::ks_nth<{n}, {function}::ks_parameters>::ks_type ks_p{n}" for n in numbers
    )
    arguments = ", ".join(f"ks_p{n}" for n in numbers)
    return (
        include_line(candidate)
        + _TYPES
        + f'extern "C" __attribute__((visibility("default"))) {function}::ks_result\n'
        + f"{ENTRY_SYMBOL}({parameters}) {{ return {name}({arguments}); }}\n"
    )
