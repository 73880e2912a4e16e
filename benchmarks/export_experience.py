"""Write the measured outcomes of a pool as JSON Lines: `python benchmarks/export_experience.py POOL.sqlite OUT.jsonl`."""

import sys
from pathlib import Path

from kernelskill.experience.pool import ExperiencePool
from kernelskill.runs import write_atomically


def main(pool_file: Path, out: Path) -> None:
    pool = ExperiencePool.open(pool_file)
    rows = pool.experiences(evidence=("measured", "none"), limit=100_000)
    write_atomically(out, "".join(row.model_dump_json() + "\n" for row in rows).encode())
    pool.close()
    print(f"{len(rows)} outcomes on {', '.join(sorted({row.gpu for row in rows}))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
