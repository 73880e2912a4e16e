"""A llama.cpp server with a tiny model of random weights, run as a program of its own.

python llama_server.py FOLDER     prints its address, ends with its standard input
"""

import sys
from pathlib import Path

import gguf
import numpy as np
import xllamacpp

WIDTH, LAYERS, HEADS, HIDDEN, CONTEXT = 64, 2, 4, 128, 512
TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant: "


def write_model(path: Path) -> None:
    """Write a model that knows single bytes and says anything."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_name("tiny-random")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(0)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([word.encode() for word in words])
    writer.add_token_scores([0.0] * len(words))
    writer.add_token_types([2, 3, 3] + [6] * 256)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)
    add_weights(writer, len(words))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_weights(writer: gguf.GGUFWriter, words: int) -> None:
    random = np.random.default_rng(0)

    def weights(rows: int, columns: int) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * 0.05).astype(np.float32)

    writer.add_tensor("token_embd.weight", weights(words, WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", weights(words, WIDTH))
    for layer in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights(WIDTH, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(HIDDEN, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", weights(HIDDEN, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", weights(WIDTH, HIDDEN))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(WIDTH, np.float32))


def serve(path: Path) -> None:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.model_alias = {"tiny"}
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = 1
    parameters.warmup = False
    parameters.use_jinja = True
    parameters.port = 0
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    file = Path(sys.argv[1]) / "tiny.gguf"
    write_model(file)
    serve(file)
