"""How far `kernelskill.llm.tokens` is from what tokenizers count, on prompts, answers and CUDA source.

    python benchmarks/tokens.py VOCABULARY... [--out benchmarks/results/tokens.json]

A vocabulary is a `NAME.tiktoken` file (needs `pip install tiktoken`) or a `NAME.json` of the tokenizers library (needs
`pip install tokenizers`). Budgets reckon with the estimate before a call, so that it should never be below the count;
afterwards what the server reports counts.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from kernelskill.llm.tokens import estimate_text

HERE = Path(__file__).parent
Count = Callable[[str], int]
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def main() -> None:
    """Count, compare, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("vocabularies", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "tokens.json")
    arguments = parser.parse_args()
    texts = {"prompts": prompts(), "answers": answers(), "sources": sources()}
    found = {
        path.stem: {kind: compared(counter(path), each) for kind, each in texts.items()}
        for path in sorted(arguments.vocabularies)
    }
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    for name, kinds in found.items():
        for kind, row in kinds.items():
            print(name, kind, row)


def prompts() -> list[str]:
    """Return the prompts of the mailbox that was answered."""
    box = sorted((HERE / "results" / "mailbox" / "box").glob("*.md"))
    pages = [path.read_text(encoding="utf-8") for path in box if not path.name.endswith(".answer.md")]
    return [page.partition("\nPROMPT\n")[2] for page in pages]


def answers() -> list[str]:
    """Return its answers."""
    box = sorted((HERE / "results" / "mailbox" / "box").glob("*.answer.md"))
    return [path.read_text(encoding="utf-8") for path in box]


def sources() -> list[str]:
    """Return the kernels of the packaged suite."""
    return [path.read_text(encoding="utf-8") for path in sorted((HERE / "core").glob("*/kernel.cu"))]


def compared(count: Count, texts: Sequence[str]) -> dict[str, float]:
    """Return bytes a token, and the estimate over the count: least, median, most."""
    counts = [count(text) for text in texts]
    ratios = [estimate_text(text) / number for text, number in zip(texts, counts, strict=True)]
    size = sum(len(text.encode()) for text in texts)
    return {
        "texts": len(texts),
        "bytes_a_token": round(size / sum(counts), 3),
        "least": round(min(ratios), 3),
        "median": round(median(ratios), 3),
        "most": round(max(ratios), 3),
    }


def counter(path: Path) -> Count:
    """Return what counts the tokens of a text with a vocabulary."""
    if path.suffix == ".tiktoken":
        import tiktoken

        lines = (line.split() for line in path.read_bytes().splitlines() if line)
        ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
        pattern = _O200K if len(ranks) > 190_000 else _CL100K
        encoding = tiktoken.Encoding(path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        return lambda text: len(encoding.encode_ordinary(text))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


if __name__ == "__main__":
    main()
