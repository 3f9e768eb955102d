"""Makes a small Llama of random weights and a byte-level BPE over given texts, in the environment of `make parity-env`.

`python make_model.py <texts.json> <directory to save to>`; the texts are `{"contexts": [...], "choices": [...]}`. The
same texts give the same model. Weights far larger than usual make its log-probabilities differ clearly from word to
word and from context to context, which is all that a comparison of two programs asks of a model; still larger ones for
choices of one token make some of them the likeliest of all tokens.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

BEGIN, END = "<|begin|>", "<|end|>"
VOCABULARY = 2048
LONGEST = 8192
SPREAD = 0.25
FAVOUR = 2.0


def tokenizer_of(texts: list[str]) -> PreTrainedTokenizerFast:
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[BEGIN, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    model.train_from_iterator(texts, trainer)
    # As Llama's: every text begins with a token of its own.
    begin = [(BEGIN, model.token_to_id(BEGIN))]
    model.post_processor = processors.TemplateProcessing(single=f"{BEGIN} $A", special_tokens=begin)
    return PreTrainedTokenizerFast(tokenizer_object=model, bos_token=BEGIN, eos_token=END, pad_token=END)


def model_for(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    torch.manual_seed(20261120)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=LONGEST,
        initializer_range=SPREAD,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def favour(model: LlamaForCausalLM, tokens: set[int]) -> None:
    with torch.no_grad():
        model.lm_head.weight[sorted(tokens)] *= FAVOUR


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text())
    tokenizer = tokenizer_of(given["contexts"] + given["choices"])
    made = model_for(tokenizer)
    encoded = tokenizer(given["choices"], add_special_tokens=False)["input_ids"]
    favour(made, {ids[0] for ids in encoded if len(ids) == 1})
    made.save_pretrained(sys.argv[2])
    tokenizer.save_pretrained(sys.argv[2])
