"""Exact match and F1 of answers: the rule of SQuAD, and that of CMRC 2018 for Chinese.

Both give the numbers of the data sets' own scripts. SQuAD's is that of version 2.0; on 1.1 it
differs only for an answer that is nothing but an article or punctuation.
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

ARTICLE = re.compile(r"\b(?:a|an|the)\b")
WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

# Signs that the CMRC 2018 script passes over. It also lists a pair of three dots, which no single
# character equals: a lone \u2026 stays.
CHINESE_SIGNS = frozenset(
    "-:_*^/\\~`+=\uff0c\u3002\uff1a\uff1f\uff01\u201c\u201d\uff1b\u2019\u300a\u300b\u00b7\u3001"
    "\u300c\u300d\uff08\uff09\uff0d\uff5e\u300e\u300f"
)
HAN = re.compile("[\u4e00-\u9fa5]")

# What stands between Chinese characters is cut as in the Penn Treebank, in this order.
TREEBANK_CUTS = [
    (re.compile("[\u00ab\u2018\u201e]"), r" \g<0> "),
    (re.compile('^"'), " `` "),
    (re.compile(r"(?<=[ (\[{<])(?:\"|'')"), " `` "),
    (re.compile(r"'(?!re|ve|ll|[mtsdn])(?=\w\b)"), "' "),
    (re.compile(r"(?<!\.)\.(?=[\])}>\"'\u00bb ]*$)"), " . "),
    (re.compile(r",(?!\d)"), " , "),
    (re.compile(r"\.{2,}|[;@#$%&?!\[\](){}<>\u00bb]"), r" \g<0> "),
    (re.compile("''|\""), " '' "),
    (re.compile(r"(?<=[^' ])('(?:ll|re|ve|[smd])?|n't)(?= |$)"), r" \1 "),
    (
        re.compile(r"\b(can)(?=not\b)|\b(gim|lem)(?=me\b)|\b(gon|wan)(?=na\b)|\b(got)(?=ta\b)"),
        r"\g<0> ",
    ),
]


def normalize_answer(text: str) -> str:
    """Lower the case, and drop ASCII punctuation, English articles and needless blanks."""
    plain = text.lower().translate(WITHOUT_PUNCTUATION)
    return " ".join(ARTICLE.sub(" ", plain).split())


def squad_exact_match(answers: Sequence[str], predicted: str) -> float:
    """1.0 when the prediction equals one of the answers after normalisation, else 0.0.

    Args:
        answers: all that count as right; without any, the empty prediction is right.
        predicted: the answer given; empty for "no answer".
    """
    return float(normalize_answer(predicted) in _true_answers(answers))


def squad_f1(answers: Sequence[str], predicted: str) -> float:
    """F1 of the words shared with the closest answer.

    Args:
        answers: all that count as right; without any, only the empty prediction scores.
        predicted: the answer given; empty for "no answer".
    """
    words = normalize_answer(predicted).split()
    return max(_word_f1(answer.split(), words) for answer in _true_answers(answers))


def _true_answers(answers: Sequence[str]) -> list[str]:
    return [normal for answer in answers if (normal := normalize_answer(answer))] or [""]


def _word_f1(expected: list[str], words: list[str]) -> float:
    if not expected or not words:
        return float(expected == words)
    num_same = sum((Counter(expected) & Counter(words)).values())
    if num_same == 0:
        return 0.0
    precision, recall = num_same / len(words), num_same / len(expected)
    return 2 * precision * recall / (precision + recall)


def cmrc_exact_match(answers: Sequence[str], predicted: str) -> float:
    """1.0 when the prediction equals one of the answers but for case and signs, else 0.0.

    Args:
        answers: all that count as right; without any, the empty prediction is right.
        predicted: the answer given; empty for "no answer".
    """
    return float(
        _without_signs(predicted) in {_without_signs(answer) for answer in answers or [""]}
    )


def cmrc_f1(answers: Sequence[str], predicted: str) -> float:
    """F1 of the longest run shared with the closest answer, in Chinese characters and words.

    Args:
        answers: all that count as right; without any, only the empty prediction scores.
        predicted: the answer given; empty for "no answer".
    """
    if not answers:
        return float(not predicted)
    segments = chinese_segments(predicted)
    return max(_run_f1(chinese_segments(answer), segments) for answer in answers)


def _run_f1(expected: list[str], segments: list[str]) -> float:
    size = SequenceMatcher(None, expected, segments, autojunk=False).find_longest_match().size
    if size == 0:
        return 0.0
    precision, recall = size / len(segments), size / len(expected)
    return 2 * precision * recall / (precision + recall)


def _without_signs(text: str) -> str:
    return "".join(c for c in text.lower().strip() if c not in CHINESE_SIGNS)


def chinese_segments(text: str) -> list[str]:
    """Cut a text into Chinese characters and, between them, words of other scripts.

    Case and the signs that the CMRC 2018 script passes over are dropped first.
    """
    segments: list[str] = []
    run = ""
    for character in _without_signs(text):
        if HAN.match(character):
            segments += [*_treebank_words(run), character]
            run = ""
        else:
            run += character
    return segments + _treebank_words(run)


def _treebank_words(run: str) -> list[str]:
    run = " ".join(run.split())
    for pattern, replacement in TREEBANK_CUTS:
        run = pattern.sub(replacement, run)
    return run.split()
