"""Training speed against a plain loop over the `transformers` classes, side by side.

Both train the same pair at the same shapes on the same random tokens: ELECTRA's joint step with
AdamW. The plain loop is what its classes invite to: the vocabulary head at every position, sampling
by `torch.multinomial`, PyTorch's AdamW. The turns alternate, so that a busy machine hits both.

    python bench/pretrain.py [--hidden 256 --layers 12 --batch 32 --length 128 --turns 3]
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

from amber.data.batch import Batch
from amber.electra.config import GeneratorConfig, MaskConfig, Method, generator_shape
from amber.electra.mask import mask
from amber.electra.pretraining import PretrainingModel
from amber.model.config import EncoderConfig

SPECIAL, MASK_ID = 5, 4
Step = Callable[[], None]


def shape(args: argparse.Namespace) -> EncoderConfig:
    """Return the discriminator's shape: the paper's body."""
    return EncoderConfig(
        body="bert",
        vocab_size=args.vocab,
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=max(1, args.hidden // 64),
        intermediate_size=4 * args.hidden,
        embedding_size=min(args.hidden, 128),
        type_vocab_size=2,
        hidden_dropout=0.1,
        attention_dropout=0.1,
        norm_eps=1e-12,
        initial_scale=0.0,
    )


def our_step(args: argparse.Namespace, batch: Batch) -> Step:
    """Build amber's step."""
    main = shape(args)
    generator = generator_shape(main, GeneratorConfig(width_fraction=args.generator))
    forbidden, ordinary = torch.arange(SPECIAL), torch.arange(SPECIAL, args.vocab)
    model = PretrainingModel(
        main, generator, Method(), forbidden_ids=forbidden, ordinary_ids=ordinary, seed=0
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = batch.input_ids

    def step() -> None:
        maskable = torch.ones_like(ids, dtype=torch.bool)
        masked = mask(
            ids, maskable, batch.noise, MaskConfig(), mask_id=MASK_ID, ordinary_ids=ordinary
        )
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            outcome = model(batch, masked)
        assert outcome.proposal is not None
        assert outcome.answer is not None
        loss = outcome.proposal.loss / masked.is_used.sum()
        loss = loss + 50 * outcome.answer.loss / ids.numel()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def plain_step(args: argparse.Namespace, batch: Batch) -> Step:
    """Build the step over the classes of `transformers`."""
    main = shape(args)
    generator = generator_shape(main, GeneratorConfig(width_fraction=args.generator))

    def config(one: EncoderConfig) -> transformers.ElectraConfig:
        return transformers.ElectraConfig(
            vocab_size=one.vocab_size,
            embedding_size=one.embedding_size,
            hidden_size=one.hidden_size,
            num_hidden_layers=one.num_hidden_layers,
            num_attention_heads=one.num_attention_heads,
            intermediate_size=one.intermediate_size,
        )

    masker = transformers.ElectraForMaskedLM(config(generator)).train()
    detector = transformers.ElectraForPreTraining(config(main)).train()
    masker.electra.embeddings = detector.electra.embeddings
    masker.generator_lm_head.weight = detector.electra.embeddings.word_embeddings.weight
    weights = list({id(p): p for m in (masker, detector) for p in m.parameters()}.values())
    optimizer = torch.optim.AdamW(weights, lr=1e-4)
    ids = batch.input_ids
    num_masked = round(0.15 * ids.shape[1])

    def step() -> None:
        places = torch.rand(ids.shape).topk(num_masked, dim=1).indices
        chosen = torch.zeros_like(ids, dtype=torch.bool).scatter(1, places, True)
        shown = torch.where(chosen & (torch.rand(ids.shape) < 0.85), MASK_ID, ids)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.bf16):
            logits: Tensor = masker(input_ids=shown).logits
            labels = torch.where(chosen, ids, -100)
            mlm = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
            with torch.no_grad():
                p = logits[chosen].float().softmax(-1)
                corrupted = ids.masked_scatter(chosen, torch.multinomial(p, 1).squeeze(1))
            scores: Tensor = detector(input_ids=corrupted).logits
            target = (corrupted != ids).float()
            rtd = F.binary_cross_entropy_with_logits(scores.float(), target)
        (mlm + 50 * rtd).backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return step


def seconds(step: Step, *, count: int) -> float:
    """Time some steps after one that is not timed; return seconds per step."""
    step()
    start = time.perf_counter()
    for _ in range(count):
        step()
    return (time.perf_counter() - start) / count


def main() -> None:
    """Print tokens per second of both, and the ratio of each turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--generator", type=float, default=0.5)
    parser.add_argument("--vocab", type=int, default=30522)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    size = (args.batch, args.length)
    batch = Batch(
        input_ids=torch.randint(SPECIAL, args.vocab, size),
        attention_mask=torch.ones(size, dtype=torch.bool),
        token_type_ids=torch.zeros(size, dtype=torch.long),
        noise=torch.rand(5, *size),
        examples=torch.arange(args.batch),
        is_padded=False,
    )
    ours, plain = our_step(args, batch), plain_step(args, batch)
    tokens, ratios = args.batch * args.length, []
    for turn in range(args.turns):
        mine, theirs = (seconds(step, count=args.steps) for step in (ours, plain))
        ratios.append(theirs / mine)
        print(
            f"turn {turn + 1}: amber {tokens / mine:,.0f} tokens/s, plain loop "
            f"{tokens / theirs:,.0f} tokens/s, ratio {ratios[-1]:.2f}"
        )
    print(
        f"median ratio {statistics.median(ratios):.2f} (torch {torch.__version__}, transformers "
        f"{transformers.__version__}, {args.threads} threads, bf16 {args.bf16})"
    )


if __name__ == "__main__":
    main()
