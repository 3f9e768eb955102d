"""Trains a Llama of half a million parameters on question and answer pairs, in the environment of `make model-env`.

`python train.py <rows.jsonl> <directory to save to>`, each row {"prompt": …, "answer": …}. Prints steps and loss, and
the share of the last rows, held out, that it then answers exactly.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn.functional import cross_entropy
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

PAD, USER, ASSISTANT, END = "<pad>", "<user>", "<assistant>", "<end>"
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ ('<assistant>' if message['role'] == 'assistant' else '<user>') + message['content'] + '<end>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)
VOCABULARY = 768
BATCH = 32
LEARNING_RATE = 1.5e-3
"""From 3e-3 on, training stays at chance for some seeds."""
WARM_UP_STEPS = 50
MOST_STEPS = 1500
GOOD_LOSS, GOOD_STEPS = 0.01, 25
"""Training ends when the answers' loss, averaged over so many steps, is below. It takes 300 to 450 steps."""
LANGUAGE_WEIGHT = 0.1
"""Weight of predicting the prompt too. On answers alone the model stays at chance."""
HELD_OUT = 300
THREADS = 1
"""Two would be faster on two idle cores, and several times slower on busy ones: each step waits for the later."""
IGNORED = -100

Row = dict[str, str]
Chat = tuple[list[int], int]
"""Token ids of a whole chat, and how many of them are the prompt's."""


def shared_start(texts: list[str]) -> str:
    """The longest text that all begin with."""
    first, last = min(texts), max(texts)
    length = next((at for at, letter in enumerate(first) if letter != last[at]), len(first))
    return first[:length]


def instruction(rows: list[Row]) -> list[str]:
    """What stands before and after the item's own text in every prompt."""
    prompts = [row["prompt"] for row in rows]
    before = shared_start(prompts)
    after = shared_start([prompt[len(before) :][::-1] for prompt in prompts])[::-1]
    return [text for text in (before, after) if text]


def tokenizer_of(rows: list[Row]) -> PreTrainedTokenizerFast:
    """A byte-level BPE over these texts, with the chat template.

    The instruction's parts are one token each, which makes a chat a third as long and training as much faster.
    """
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[PAD, USER, ASSISTANT, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    model.train_from_iterator((f"{row['prompt']}\n{row['answer']}" for row in rows), trainer)
    model.add_tokens([AddedToken(text, normalized=False) for text in instruction(rows)])
    return PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token=PAD, eos_token=END, padding_side="left", chat_template=CHAT_TEMPLATE
    )


def model_for(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=8,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config)


def encode(tokenizer: PreTrainedTokenizerFast, rows: list[Row]) -> list[Chat]:
    prompts = tokenizer([f"{USER}{row['prompt']}{END}{ASSISTANT}" for row in rows])["input_ids"]
    answers = tokenizer([f"{row['answer']}{END}" for row in rows])["input_ids"]
    return [(prompt + answer, len(prompt)) for prompt, answer in zip(prompts, answers, strict=True)]


def batch_of(chats: list[Chat], pad: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ids padded on the right, and next-token targets of the answers and of the prompts, IGNORED elsewhere."""
    length = max(len(ids) for ids, _ in chats)
    ids = torch.full((len(chats), length), pad)
    answer, prompt = torch.full_like(ids, IGNORED), torch.full_like(ids, IGNORED)
    for row, (tokens, prompt_length) in enumerate(chats):
        line = torch.tensor(tokens)
        ids[row, : len(tokens)] = line
        prompt[row, : prompt_length - 1] = line[1:prompt_length]
        answer[row, prompt_length - 1 : len(tokens) - 1] = line[prompt_length:]
    return ids, answer, prompt


def train(model: LlamaForCausalLM, chats: list[Chat], pad: int) -> int:
    """Returns the steps it took."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01, fused=True
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / WARM_UP_STEPS))
    order = torch.randperm(len(chats)).tolist()
    recent: deque[float] = deque(maxlen=GOOD_STEPS)
    model.train()
    for step in range(MOST_STEPS):
        chosen = [chats[order[(step * BATCH + offset) % len(order)]] for offset in range(BATCH)]
        ids, answer, prompt = batch_of(chosen, pad)
        logits = model(input_ids=ids, use_cache=False).logits.flatten(0, 1)
        answer_loss = cross_entropy(logits, answer.flatten(), ignore_index=IGNORED)
        loss = answer_loss + LANGUAGE_WEIGHT * cross_entropy(logits, prompt.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        recent.append(answer_loss.item())
        mean = sum(recent) / len(recent)
        if step % 100 == 99:
            print(f"step {step + 1}: answers' loss {mean:.3f}", flush=True)
        if len(recent) == GOOD_STEPS and mean < GOOD_LOSS:
            return step + 1
    return MOST_STEPS


def exact_share(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, rows: list[Row]) -> float:
    """Share of the rows whose greedy answer is the expected one."""
    model.eval()
    right = 0
    for start in range(0, len(rows), 50):
        part = rows[start : start + 50]
        chats: Any = [[{"role": "user", "content": row["prompt"]}] for row in part]
        inputs = tokenizer.apply_chat_template(
            chats, add_generation_prompt=True, return_tensors="pt", padding=True, return_dict=True
        )
        with torch.inference_mode():
            output = model.generate(**inputs, max_new_tokens=12, do_sample=False)
        texts = tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        right += sum(text == row["answer"] for text, row in zip(texts, part, strict=True))
    return right / len(rows)


def main(rows_path: Path, save_to: Path) -> None:
    began = time.monotonic()
    torch.manual_seed(20261120)
    torch.set_num_threads(THREADS)
    rows: list[Row] = [json.loads(line) for line in rows_path.read_text().splitlines()]
    tokenizer = tokenizer_of(rows[:-HELD_OUT])
    model = model_for(tokenizer)
    chats = encode(tokenizer, rows[:-HELD_OUT])
    tokens = sum(len(ids) for ids, _ in chats) / len(chats)
    print(f"{model.num_parameters():,} parameters, {len(chats):,} chats of {tokens:.0f} tokens", flush=True)
    steps = train(model, chats, tokenizer.pad_token_id)
    share = exact_share(model, tokenizer, rows[-HELD_OUT:])
    print(f"held out: {share:.3f} after {steps} steps, {time.monotonic() - began:.0f} s")
    model.save_pretrained(save_to)
    tokenizer.save_pretrained(save_to)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
