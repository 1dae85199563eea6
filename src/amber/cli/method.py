"""The method of a run in words: where its noise comes from, and what its metrics mean."""

from typing import Final

from amber.electra.config import BINARY, NoiseConfig, NoiseSource, Objective
from amber.run.config import PretrainConfig

SOURCES: Final[dict[NoiseSource, str]] = {
    "generator": "a generator",
    "unigram": "token frequencies",
    "uniform": "all tokens alike",
    "frozen": "a frozen model",
    "two_tower": "two causal towers",
}


def is_hiding(objective: Objective, noise: NoiseSource) -> bool:
    """Whether chosen tokens are hidden by [MASK] from what predicts them."""
    return objective == "mlm" or noise in ("generator", "frozen")


def proposer(objective: Objective, noise: NoiseSource) -> str:
    """Name the loss of what proposes tokens: two towers predict all of them, not hidden ones."""
    return "towers'" if objective != "mlm" and noise == "two_tower" else "MLM"


def detector(objective: Objective) -> str:
    """Name the binary task of the main encoder."""
    return {"electric": "NCE", "all_tokens_mlm": "copy gate"}.get(objective, "RTD")


def noise_words(config: PretrainConfig) -> str:
    """Say where replacements come from, and what learns when; nothing with the objective mlm."""
    if config.objective == "mlm":
        return ""
    noise = config.noise
    source = SOURCES[noise.source]
    if noise.checkpoint is not None:
        source += f" ({noise.checkpoint})"
    return "; ".join([f"replacements from {source}{draw_words(noise)}", *algorithm_words(config)])


def draw_words(noise: NoiseConfig) -> str:
    """Say how replacements are drawn, where it is not plainly."""
    words = []
    if noise.final_temperature and noise.final_temperature != noise.temperature:
        words.append(f"temperature {noise.temperature:g} to {noise.final_temperature:g}")
    elif noise.temperature != 1:
        words.append(f"temperature {noise.temperature:g}")
    words += [f"top {noise.top_k}"] * (noise.top_k > 0)
    words += [f"top {noise.top_p:.0%}"] * (noise.top_p < 1)
    words += ["never the original"] * noise.forbid_original
    words += [f"{noise.random_fraction:.0%} of the others at random"] * (noise.random_fraction > 0)
    return "".join(f", {each}" for each in words)


def algorithm_words(config: PretrainConfig) -> list[str]:
    """Say what learns when, where two networks learn."""
    if not config.method.is_generator_trained:
        return []
    if config.algorithm == "two_stage":
        share = f"{config.switch_fraction:.0%} of the budget"
        return [f"it learns for {share}, then the main encoder"]
    if config.algorithm == "adversarial":
        return ["it learns to raise the discriminator's loss"]
    return ["both learn in every step"]


def constant_answer(objective: Objective, metrics: dict[str, float]) -> str:
    """Return the binary answer that is right more often."""
    is_mostly_original = metrics["majority_accuracy"] >= 0.5
    if objective == "electric":
        return "data" if is_mostly_original else "noise"
    return "original" if is_mostly_original else "replaced"


def baseline_words(
    objective: Objective, metrics: dict[str, float], *, unigram_entropy: float
) -> str:
    """Say what the baselines of held-out metrics know."""
    words = (
        f"baseline: knowing only how frequent each token is (entropy {unigram_entropy:.3f} nats)"
    )
    if objective == "all_tokens_mlm":
        return f"{words}; copying every token"
    if objective in BINARY and "majority_accuracy" in metrics:
        return f'{words}; always saying "{constant_answer(objective, metrics)}"'
    return words
