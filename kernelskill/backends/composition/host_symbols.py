"""Which functions the host part of a candidate may call; everything else is refused by name.

The list holds what honest launchers need: the CUDA runtime, memory, text for error messages, mathematics, containers
of the standard library and what compilers call unasked. Files, processes, threads, the network, the
environment, clocks and loading of code are not on it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from kernelskill.backends.demangle import display_name
from kernelskill.backends.elf import ElfFile
from kernelskill.schema.build import Construct
from kernelskill.schema.task import Allowance

_LIBRARIES = re.compile(
    r"(cublas|cudnn|cufft|cusparse|cusolver|curand|nccl|npp[ist]?[A-Z]?|nvjpeg|cutensor|cudss|nvshmem|cufile|mpi|MPI)"
    r"[A-Z_]\w*|cblas_\w+|[sdcz]gemm_"
)
LOADS_CODE = re.compile(
    r"cu(Module|Library|Link)[A-Z]\w*|cudaLibrary[A-Z]\w*|nvrtc[A-Z]\w*|nvJitLink\w*|nvPTXCompiler\w*"
)
_REACHES_OTHERS = re.compile(
    r"cuda?Ipc[A-Z]\w*|cuda?\w*(Import|Export)External\w*|cudaDeviceEnablePeerAccess"
)
_RUNTIME = re.compile(
    r"(__)?cuda[A-Z]\w*|cu(Ctx|Launch|Mem|Stream|Event|Device|Func|Graph|Module|Init|Get)[A-Z]\w*"
)
_LOCAL = 0
_CUDA = re.compile(r"(__)?cuda[A-Z]\w*|cu[A-Z]\w*")


def _listed(section: str) -> frozenset[str]:
    text = (Path(__file__).parent / "host_functions.txt").read_text(encoding="ascii")
    words = text.partition(f"[{section}]\n")[2].partition("[")[0]
    return frozenset(word for line in words.splitlines() if not line.startswith("#") for word in line.split())


_C = _listed("c")
_MATHEMATICS = _listed("mathematics")
_COMPILER = re.compile(
    r"__(?:popcount|parity|clz|ctz|ffs|bswap)[sdt]i2|__u?(?:div|mod|divmod)[dt]i[34]|__mul[dt]i3|__(?:ash|lsh)[lr][dt]i3"
    r"|__(?:mul|div)[sdxt]c3|__(?:fix|float|extend|trunc)\w+"
)
"""Arithmetic that compilers take from their own library."""
_CXXABI = re.compile(
    r"__cxa_(guard_\w+|throw|rethrow|begin_catch|end_catch|allocate_exception|free_exception|pure_virtual|bad_cast|bad_typeid"
    r"|throw_bad_array_new_length|get_exception_ptr|current_exception_type|init_primary_exception"
    r"|call_terminate|call_unexpected|demangle)"
    r"|__dynamic_cast|_Zn[wa]\w*|_Zd[la]\w*"
)
_STANDARD = re.compile(
    r"_ZNK?Sa\w+|_ZN?K?St(?:"
    r"7__cxx1112basic_string|7__cxx1118basic_stringstream|7__cxx1119basic_[io]stringstream|7__cxx1115basic_stringbuf"
    r"|\d+__throw_\w+|__throw|9terminatev|9exception|13runtime_error|11logic_error|16invalid_argument"
    r"|12length_error|12out_of_range|11range_error|12domain_error|14overflow_error|15underflow_error"
    r"|9bad_alloc|8bad_cast|20bad_array_new_length|17bad_function_call|9type_info|18uncaught_exception"
    r"|8__detail|15_List_node_base|18_Rb_tree\w*|29_Rb_tree|28_Rb_tree|20_Rb_tree|11_Hash_bytes|15_Fnv_hash_bytes"
    r"|21ios_base_library_init|4cout|4cerr|4clog|4endl|5flush|4ends|lsI|16__ostream_insert|9basic_ios|8ios_base|6locale|5ctype|3put|So"
    r"|17__istream_extract|15basic_streambuf|10error_code|3_V2|15__exception_ptr|17current_exception|17rethrow_exception"
    r"|7nothrow|17__verbose_terminate|24__throw|19__throw|20__throw|25__throw|21__glibcxx_assert_fail"
    r")\w*"
    r"|_ZSt8to_chars\w+|_ZSt10from_chars\w+|_ZNK?So\w+|_ZNK?Ss\w*|_ZNK?St9basic_iosIcSt11char_traitsIcEE\w*|_ZSt\d+_Rb_tree\w*"
    r"|_ZT[VISTC](?:St|NSt|N10__cxxabiv1|S[oi]$|N9__gnu_cxx)\w*|_ZT[ISV][a-zP]\w{0,4}|_ZStrsI\w*|_ZStlsI\w*"
)
_FORBIDDEN_STANDARD = re.compile(
    r"filebuf|fstream|thread|filesystem|chrono|future|random_device|condition_variable"
)


_OF_NVTX = frozenset({"dlopen", "dlclose", "dlsym", "getenv", "sched_yield"})
"""Asked for by the toolkit's tracing header, which the headers of CUB and Thrust include."""


def host_symbol_constructs(host_object: bytes, spelled: Container[str]) -> Iterator[Construct]:
    """Yield the functions that a host object asks for and may not have.

    Args:
        host_object: The object before it is linked, so that nothing that a library provides is left out.
        spelled: The identifiers in the candidate's own text, macros expanded.

    Raises:
        ArtifactCorrupt: It is no object file.
    """
    symbols = ElfFile(host_object, "host.o").symbols
    wanted = {symbol.name for symbol in symbols if symbol.section == 0 and symbol.name}
    if any(symbol.name.startswith("nvtx") for symbol in symbols):
        wanted -= {name for name in _OF_NVTX if name not in spelled}
    yield from _refused(sorted(wanted))
    for name in sorted({symbol.name for symbol in symbols if symbol.section and symbol.binding != _LOCAL}):
        if _RUNTIME.fullmatch(name):
            does = f"defines {name}, which is the CUDA runtime's"
            yield _found(name, f"definition of {name}", None, does)


def _refused(names: Iterable[str]) -> Iterator[Construct]:
    for name in names:
        shown = display_name(name)
        if _LIBRARIES.fullmatch(name):
            yield _found(name, "library calls", Allowance.LIBRARIES, f"calls {name}, which is a library's")
        elif LOADS_CODE.fullmatch(name):
            yield _found(
                name, f"call of {name}", None, f"calls {name}, which brings in code that nobody has seen"
            )
        elif _REACHES_OTHERS.fullmatch(name):
            yield _found(name, f"call of {name}", None, f"calls {name}, which reaches beyond its own memory")
        elif not is_allowed(name):
            does = f"calls {shown}, which is not among the functions that a launcher may call"
            yield _found(name, f"call of {shown}", None, does)


def is_allowed(name: str) -> bool:
    """Whether host code may call a function, by its symbol."""
    if _CUDA.fullmatch(name):
        return not (
            _LIBRARIES.fullmatch(name) or LOADS_CODE.fullmatch(name) or _REACHES_OTHERS.fullmatch(name)
        )
    if name in _C or name in _MATHEMATICS or (name[:-1] in _MATHEMATICS and name[-1] in "fl"):
        return True
    if _CXXABI.fullmatch(name) or _COMPILER.fullmatch(name):
        return True
    return bool(_STANDARD.fullmatch(name)) and not _FORBIDDEN_STANDARD.search(name)


def _found(name: str, family: str, allowance: Allowance | None, does: str) -> Construct:
    return Construct(family=family, allowance=allowance, shown=name, does=does, found_in="host object")
