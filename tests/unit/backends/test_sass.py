from hypothesis import given
from hypothesis import strategies as st

from kernelskill.backends.sass import OTHER, opcode_class, read_sass

DISASSEMBLED = """
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM90"
//--------------------- .text._Z1fPf              --------------------------
	.section	.text._Z1fPf,"ax",@progbits
.text._Z1fPf:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R4, [R2.64] ;
.L_x_0:
        /*0020*/                   FFMA R5, R4, R4, R5 ;
        /*0030*/         @P1       BRA `(.L_x_0) ;
        /*0040*/                   EXIT ;
        /*0050*/                   NOP ;
.text._Z1gv:
        /*0000*/                   EXIT ;
"""
DUMPED = """
		Function : _Z1fPf
	.headerflags	@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;          /* 0x00000a0000017a02 */
                                                                     /* 0x000fc80000000f00 */
        /*0010*/              @!P0 LDG.E.128 R4, [R2.64] ;          /* 0x000000000004798b */
        /*0020*/                   FFMA R5, R4, R4, R5 ;            /* 0x0000000404057223 */
        /*0030*/               @P1 BRA 0x20 ;                       /* 0x0000000404057223 */
        /*0040*/                   EXIT ;                           /* 0x000000000000794d */
        /*0050*/                   NOP ;                            /* 0x0000000000007918 */
		Function : _Z1gv
        /*0000*/                   EXIT ;                           /* 0x000000000000794d */
"""


def test_both_tools_tell_the_same() -> None:
    one, other = read_sass(DISASSEMBLED), read_sass(DUMPED)
    assert one.keys() == other.keys() == {"_Z1fPf", "_Z1gv"}
    assert one["_Z1fPf"].opcodes == other["_Z1fPf"].opcodes
    assert one["_Z1fPf"].comparable == other["_Z1fPf"].comparable
    assert one["_Z1fPf"].mix() == {"control": 2, "constants": 1, "fp32": 1, "global loads": 1}


def test_opcodes_are_sorted_by_what_they_do() -> None:
    wanted = {
        "LDG.E.128": "global loads",
        "LDS.U.64": "shared loads",
        "LDSM.16.M88.4": "shared loads",
        "LDGSTS.E.BYPASS.128": "asynchronous copies",
        "STL": "local memory",
        "ATOMS.POPC.INC.32": "shared atomics",
        "REDG.E.ADD.STRONG.GPU": "global atomics",
        "RED.E.ADD.F32": "global atomics",
        "REDUX": "shuffles and votes",
        "MUFU.EX2": "special",
        "DFMA": "fp64",
        "DMMA.884": "tensor",
        "HGMMA.64x128x16.F32": "tensor",
        "HFMA2.MMA": "fp16",
        "I2FP.F32.U32": "conversion",
        "IMAD.MOV.U32": "moves and selects",
        "IMAD.WIDE.U32": "integer",
        "IADD3.X": "integer",
        "UIADD3": "integer",
        "BAR.SYNC.DEFER_BLOCKING": "barriers",
        "BRA": "control",
        "QUITE_NEW": OTHER,
    }
    assert {opcode: opcode_class(opcode) for opcode in wanted} == wanted


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    for code in read_sass(text).values():
        assert len(code.opcodes) == len(code.instructions)
        code.mix()


@given(st.lists(st.sampled_from((DISASSEMBLED + DUMPED).splitlines()), max_size=30))
def test_lines_in_any_order_are_no_crash(lines: list[str]) -> None:
    read_sass("\n".join(lines))
