from kernelskill.config import RunConfig as RunConfig
from kernelskill.runs import StopFlag as StopFlag
from kernelskill.session import Session as Session

__version__: str
