"""How many tokens a text may have: what budgets reckon with before a call.

`benchmarks/tokens.py` compares it with what tokenizers of hosted and open models count: never below on prompts, answers
and CUDA sources. A model with a small vocabulary may count more, up to a token a byte; its server's figures correct that
with the first answer.
"""

from __future__ import annotations

import math

from kernelskill.llm.base import ModelRequest
from kernelskill.schema.base import canonical_json

_BYTES_A_TOKEN = 2.3
"""UTF-8 bytes a token of the densest CUDA sources, full of brackets and short names; prompts have more."""
_MESSAGE_OVERHEAD = 8
"""Tokens that a chat template puts around one message."""


def estimate_text(text: str) -> int:
    """Return an upper estimate of a text's tokens."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / _BYTES_A_TOKEN)


def estimate_tokens(request: ModelRequest) -> int:
    """Return an upper estimate of the tokens that a request sends."""
    messages = sum(estimate_text(message.text) + _MESSAGE_OVERHEAD for message in request.messages)
    schema = estimate_text(canonical_json(request.answer_schema)) if request.answer_schema else 0
    return messages + schema
