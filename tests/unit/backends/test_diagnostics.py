import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.diagnostics import (
    LOG_BYTES,
    SourceNames,
    compiler_was_killed,
    find_errors,
    first_bytes,
    parse_errors,
    parse_warnings,
)

FILES = {"sub dir/k é.cu": "#include <x>\n  x[0] = foo;\n}\n", "b.h": "int b\n"}
NAMES = SourceNames(FILES, "sub dir/k é.cu", "/tmp/w/sources", "entry.cu")


@pytest.mark.parametrize(
    ("log", "file", "line", "message"),
    [
        (
            '../sources/sub dir/k é.cu(2): error: identifier "foo" is undefined',
            "sub dir/k é.cu",
            2,
            "identifier",
        ),
        ('/tmp/w/sources/b.h(1): error #20: expected a ";"', "b.h", 1, 'expected a ";"'),
        ("b.h(1): catastrophic error: cannot open source file", "b.h", 1, "cannot open"),
        ("../sources/b.h:1:10: fatal error: nope.h: No such file or directory", "b.h", 1, "nope.h: No such"),
        ("b.h:1: Error: no such instruction: `this'", "b.h", 1, "no such instruction"),
        ("/usr/include/c++/x.h:7:1: error: trouble", "/usr/include/c++/x.h", 7, "trouble"),
        ("ptxas error   : Entry function 'k' uses too much shared data", "", 0, "ptxas: Entry function"),
        ("nvcc fatal   : Unknown option '-foo'", "", 0, "nvcc: Unknown option '-foo'"),
        ("gcc: error: unrecognized command-line option '-fnope'", "", 0, "gcc: unrecognized"),
        ("../entry.cu(15): error: no idea", "sub dir/k é.cu", 3, "no idea"),
        ("something odd\n\nthe very end\n", "", 0, "the very end"),
        ("", "", 0, "without a message"),
    ],
)
def test_each_tool_is_understood(log, file, line, message):
    found = parse_errors(log, NAMES)[0]
    assert (found.file, found.line) == (file, line)
    assert message in found.message


def test_the_excerpt_is_the_users_line():
    assert parse_errors("sub dir/k é.cu(2): error: x", NAMES)[0].excerpt == "x[0] = foo;"
    assert parse_errors("sub dir/k é.cu(99): error: x", NAMES)[0].excerpt == ""


def test_errors_keep_their_order_and_come_once():
    log = "b.h(1): warning #177-D: unused\nb.h(1): error: one\nb.h(1): error: two\nb.h(1): error: one\n"
    assert [found.message for found in parse_errors(log, NAMES)] == ["one", "two"]
    assert parse_warnings(log, NAMES) == ("b.h:1: unused",)


def test_an_open_brace_comes_first_with_its_line():
    log = (
        "../entry.cu(2): error: namespace definition is not allowed\n"
        'At end of source: error: expected a "}"\n'
        'sub dir/k é.cu(2): note #3196-D: to match this "{"\n'
    )
    first = parse_errors(log, NAMES)[0]
    assert (first.line, first.message) == (2, 'expected a "}" for this one')
    first = parse_errors(log.splitlines()[0], NAMES)[0]
    assert first.message == 'a "{" is not closed at the end of the file'
    assert first.line == 3


def test_a_line_of_ptx_leads_to_the_source():
    ptx = '\t.file\t1 "/tmp/w/sources/../sources/sub dir/k \\303\\251.cu"\n\t.loc\t1 2 9\n\tnonsense.f32;\n'
    log = "ptxas ../entry.ptx, line 3; error   : Not a name of any known instruction: 'nonsense'"
    found = parse_errors(log, NAMES, ptx)[0]
    assert (found.file, found.line, found.excerpt) == ("sub dir/k é.cu", 2, "x[0] = foo;")


def test_a_killed_compiler_is_told_apart():
    assert compiler_was_killed("nvcc error   : 'cicc' died due to signal 9 (Kill signal)")
    assert not compiler_was_killed("b.h(1): error: x")


@given(log=st.text())
def test_any_text_can_be_read(log):
    assert parse_errors(log, NAMES)
    find_errors(log, NAMES)
    parse_warnings(log, NAMES)
    assert len(first_bytes(log).encode()) <= LOG_BYTES
