# SPDX-License-Identifier: Apache-2.0
"""Train the checkpoint of this folder, from text that a grammar in this file makes.

    python make_micro_moe.py [STEPS]

Needs torch, transformers (only to check that it computes the same) and tokenizers. Seeds are fixed; the last bits of the weights
still depend on torch's version and the CPU.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch.nn import functional

HERE = Path(__file__).parent
CONFIG = {
    "architectures": ["MixtralForCausalLM"],
    "model_type": "mixtral",
    "vocab_size": 240,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000.0,
    "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"},
    "hidden_act": "silu",
    "sliding_window": None,
    "tie_word_embeddings": True,
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
    "dtype": "bfloat16",
    "torch_dtype": "bfloat16",
}
VOCAB, H, F, LAYERS, HEADS, HEAD_DIM, EXPERTS, TOP_K, SEQ = 240, 48, 64, 2, 6, 8, 8, 2, 64

PEOPLE = {"Lily": "She", "Anna": "She", "Mia": "She", "Tom": "He", "Ben": "He", "Sam": "He"}
COLOURS = ("red", "blue", "green", "yellow")
TOYS = ("ball", "book", "kite", "box", "boat", "hat")
PETS = ("cat", "dog", "bird", "frog", "duck")
PLACES = ("garden", "house", "park", "tree", "pond")
FOODS = ("cake", "apple", "bread", "soup")
SIZES = ("big", "small", "old")


def story(rng: random.Random) -> str:
    """A few sentences that agree with each other: who has what, who is where."""
    a, b = rng.sample(sorted(PEOPLE), 2)
    toy, colour, pet, place = rng.choice(TOYS), rng.choice(COLOURS), rng.choice(PETS), rng.choice(PLACES)
    food, size = rng.choice(FOODS), rng.choice(SIZES)
    she = PEOPLE[a]
    kind = rng.randrange(5)
    if kind == 0:
        said = [f"{a} has a {colour} {toy}.", f"{b} wants the {toy}.", f"{a} gives the {toy} to {b}."]
        said += [f"Now {b} has the {colour} {toy}.", f"{b} is happy."]
    elif kind == 1:
        said = [f"{a} has a {size} {pet}.", f"The {pet} runs to the {place}.", f"{a} cannot see the {pet}."]
        said += [f"{she} looks in the {place}.", f"There is the {size} {pet}!", f"{a} and the {pet} go home."]
    elif kind == 2:
        said = [f"{a} is in the {place} with {b}.", f"They see a {size} {pet}."]
        said += [
            f'"I like the {pet}," says {a}.',
            f'"I like the {pet} too," says {b}.',
            f"The {pet} plays with {a} and {b}.",
        ]
    elif kind == 3:
        said = [f"The {pet} is sad.", f"It wants some {food}.", f"{a} gives some {food} to the {pet}."]
        said += [f"The {pet} eats the {food}.", f"Now the {pet} is not sad."]
    else:
        said = [f"{a} cannot find the {colour} {toy}.", f'"Where is my {toy}?" says {a}.', f"{b} looks in the {place}."]
        said += [f'"Your {toy} is in the {place}!" says {b}.', f"{she} is happy to have the {colour} {toy}."]
    if rng.random() < 0.5:
        said.append(rng.choice(("They all go home.", "It was a good day.", f"{a} sleeps well.")))
    return " ".join(said)


def make_tokenizer(texts: list[str]) -> Tokenizer:
    """Byte-level BPE over the characters that occur."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB,
        special_tokens=specials,
        initial_alphabet=list("abcdefghijklmnopqrstuvwxyz"),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


class Micro(nn.Module):
    """Mixtral, small enough to compute every expert for every token."""

    def __init__(self) -> None:
        super().__init__()
        named = {"model.embed_tokens.weight": (VOCAB, H), "model.norm.weight": (H,)}
        for i in range(LAYERS):
            at = f"model.layers.{i}."
            named |= {at + "input_layernorm.weight": (H,), at + "post_attention_layernorm.weight": (H,)}
            named |= {at + f"self_attn.{n}_proj.weight": (HEAD_DIM, H) for n in "kv"}
            named |= {at + "self_attn.q_proj.weight": (HEADS * HEAD_DIM, H)}
            named |= {at + "self_attn.o_proj.weight": (H, HEADS * HEAD_DIM)}
            named |= {at + "block_sparse_moe.gate.weight": (EXPERTS, H)}
            named |= {at + f"w{n}": (EXPERTS, *((H, F) if n == 2 else (F, H))) for n in (1, 2, 3)}
        self.named = nn.ParameterDict(
            {name.replace(".", "/"): nn.Parameter(self._draw(s)) for name, s in named.items()}
        )
        angle = torch.arange(SEQ)[:, None] / CONFIG["rope_theta"] ** (torch.arange(0, HEAD_DIM, 2) / HEAD_DIM)
        self.cos, self.sin = torch.cat([angle, angle], 1).cos(), torch.cat([angle, angle], 1).sin()

    @staticmethod
    def _draw(shape: tuple[int, ...]) -> Tensor:
        return torch.ones(shape) if len(shape) == 1 else torch.randn(shape) * (0.6 / shape[-1] ** 0.5)

    def weight(self, name: str) -> Tensor:
        """A parameter by its name in the checkpoint."""
        return self.named[name.replace(".", "/")]

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return functional.rms_norm(x, (H,), self.weight(name), 1e-5)

    def _rotate(self, x: Tensor) -> Tensor:
        n = x.shape[-2]
        left, right = x.chunk(2, -1)
        return x * self.cos[:n] + torch.cat([-right, left], -1) * self.sin[:n]

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Logits, and the load-balancing loss."""
        batch, n = ids.shape
        x = self.weight("model.embed_tokens.weight")[ids]
        balance = torch.zeros(())
        for i in range(LAYERS):
            at = f"model.layers.{i}."
            y = self._norm(x, at + "input_layernorm.weight")
            q, k, v = (y @ self.weight(at + f"self_attn.{m}_proj.weight").T for m in "qkv")
            q = self._rotate(q.view(batch, n, HEADS, HEAD_DIM).transpose(1, 2))
            k, v = self._rotate(k[:, None]), v[:, None]
            shape = (batch, HEADS, n, HEAD_DIM)
            y = functional.scaled_dot_product_attention(q, k.expand(shape), v.expand(shape), is_causal=True)
            x = x + y.transpose(1, 2).reshape(batch, n, -1) @ self.weight(at + "self_attn.o_proj.weight").T
            y = self._norm(x, at + "post_attention_layernorm.weight").view(-1, H)
            share = functional.softmax(y @ self.weight(at + "block_sparse_moe.gate.weight").T, -1)
            best, chosen = share.topk(TOP_K, -1)
            mix = torch.zeros_like(share).scatter(1, chosen, best / best.sum(-1, keepdim=True))
            balance = balance + EXPERTS * ((mix > 0).float().mean(0) * share.mean(0)).sum() / TOP_K
            h = functional.silu(torch.einsum("nh,efh->enf", y, self.weight(at + "w1")))
            h = h * torch.einsum("nh,efh->enf", y, self.weight(at + "w3")) * mix.T[:, :, None]
            x = x + torch.einsum("enf,ehf->nh", h, self.weight(at + "w2")).view(batch, n, H)
        return self._norm(x, "model.norm.weight") @ self.weight("model.embed_tokens.weight").T, balance

    def checkpoint(self) -> dict[str, Tensor]:
        """Tensors under Mixtral's names, bfloat16."""
        out = {}
        for key, value in self.named.items():
            name = key.replace("/", ".")
            if name[-3:-1] == ".w":
                prefix = name[:-2] + "block_sparse_moe.experts."
                out |= {
                    f"{prefix}{e}.{name[-2:]}.weight": value[e].detach().bfloat16().contiguous() for e in range(EXPERTS)
                }
            else:
                out[name] = value.detach().bfloat16()
        return out


def batches(rows: list[list[int]], rng: random.Random, n: int) -> tuple[Tensor, Tensor]:
    """`n` stories, padded; -100 where nothing is to be learnt."""
    chosen = rng.choices(rows, k=n)
    width = max(map(len, chosen)) - 1
    inputs = torch.tensor([(r[:-1] + [2] * width)[:width] for r in chosen])
    targets = torch.tensor([(r[1:] + [-100] * width)[:width] for r in chosen])
    return inputs, targets


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Nats per token."""
    return functional.cross_entropy(logits.reshape(-1, VOCAB), targets.reshape(-1), ignore_index=-100)


def main(steps: int) -> None:
    """Write tokenizer.json, config.json, model.safetensors; print the losses."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng = random.Random(1)
    stories = [story(rng) for _ in range(20_000)]
    tokenizer = make_tokenizer(stories[:5000])
    rows = [[*tokenizer.encode(s).ids, 2] for s in stories]
    print(f"vocabulary {tokenizer.get_vocab_size()}, longest story {max(map(len, rows))} tokens", flush=True)
    assert tokenizer.get_vocab_size() <= VOCAB
    assert max(map(len, rows)) <= SEQ
    seen, held_out = rows[:-500], rows[-500:]
    model = Micro()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1.0, betas=(0.9, 0.95), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda i: 6e-3 * min(1.0, (i + 1) / 50) * max(0.02, 1 - i / steps)
    )
    for step in range(steps):
        inputs, targets = batches(seen, rng, 32)
        logits, balance = model(inputs)
        loss = loss_of(logits, targets)
        optimiser.zero_grad()
        (loss + 0.01 * balance).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    with torch.no_grad():
        inputs, targets = batches(held_out, random.Random(2), 500)
        print(f"held out: {loss_of(model(inputs)[0], targets).item():.4f}")
    tokenizer.save(str(HERE / "tokenizer.json"))
    (HERE / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (HERE / "generation_config.json").write_text(json.dumps({"bos_token_id": 1, "eos_token_id": 2}, indent=2) + "\n")
    save_file(model.checkpoint(), HERE / "model.safetensors", metadata={"format": "pt"})
    check(tokenizer, held_out)


@torch.no_grad()
def check(tokenizer: Tokenizer, held_out: list[list[int]]) -> None:
    """What transformers makes of the folder: losses, and greedy samples."""
    from transformers import MixtralForCausalLM

    model = MixtralForCausalLM.from_pretrained(HERE, dtype=torch.float32)
    inputs, targets = batches(held_out, random.Random(2), 500)
    print(f"held out, from the folder: {loss_of(model(inputs).logits, targets).item():.4f}")
    for prompt in ("", "Lily has a", "Tom is in the", "The frog is", "Ben cannot find"):
        ids = tokenizer.encode(prompt).ids
        while len(ids) < SEQ and ids[-1] != 2:
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        print(repr(prompt), "->", tokenizer.decode(ids))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2500)
