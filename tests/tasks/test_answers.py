import json
from pathlib import Path

import pytest

from amber.tasks.answers import (
    chinese_segments,
    cmrc_exact_match,
    cmrc_f1,
    normalize_answer,
    squad_exact_match,
    squad_f1,
)

# answers, prediction, F1 and exact match as cmrc2018_evaluate.py gives them (NLTK 3.4.5)
CMRC_CASES = [
    (["1919\u5e746\u670815\u65e5"], "1919\u5e746\u670815\u65e5", 1.0, 1),
    (
        ["1919\u5e746\u670815\u65e5", "6\u670815\u65e5"],
        "\u751f\u4e8e1919\u5e746\u670815\u65e5\u3002",
        0.8571428571428571,
        0,
    ),
    (["\u300a\u8303\u5ef7\u9882\u300b"], "\u8303\u5ef7\u9882", 1.0, 1),
    (["\u68b5\u8482\u5188\u5723\u5ea7", "\u8d8a\u5357"], "\u7f57\u9a6c", 0.0, 0),
    (["Windows 98\u3001Linux"], "windows 98", 0.5, 0),
    (["\u603b\u5171 3,500.5 km (\u7ea6)"], "3,500.5 km", 0.4444444444444445, 0),
    (["don't stop\u2026\u2026"], "Don't stop!", 0.5714285714285715, 0),
    (["\u7ea630%\uff0c\u5373it's"], "30%", 0.5, 0),
    (["\u5317\u4eac\u5927\u5b78"], "\u5317\u4eac\u5927\u5b66", 0.75, 0),
    (["\u201cA\u201d\u578b"], "a\u578b", 1.0, 1),
    (["1990-1991\u5e74"], "1990\u20141991\u5e74", 0.5, 0),
    (["cannot 'x' \"y\" z."], "can not", 0.33333333333333337, 0),
    ([" \u4e0a\u6d77 "], "\u4e0a\u6d77 ", 1.0, 1),
]


def test_normalisation_drops_case_articles_punctuation_and_blanks():
    assert normalize_answer("  The  U.S. Army, an\tarmy ") == "us army army"
    assert normalize_answer("theatre") == "theatre"


@pytest.mark.parametrize(
    ("answers", "predicted", "exact", "f1"),
    [
        (["the cat"], "Cat!", 1.0, 1.0),
        (["black cat", "cat"], "the cat", 1.0, 1.0),
        (["big black cat"], "black cat sat", 0.0, 2 / 3),
        (["cat cat"], "cat", 0.0, 2 / 3),  # a repeated word counts as often as both have it
        (["cat cat dog"], "cat cat", 0.0, 4 / 5),
        (["dog"], "cat", 0.0, 0.0),
        ([], "", 1.0, 1.0),
        ([], "cat", 0.0, 0.0),
        (["cat"], "", 0.0, 0.0),
        (["the"], "", 1.0, 1.0),  # nothing is left of it: counts as unanswerable
        (["the", "cat"], "", 0.0, 0.0),
    ],
)
def test_squad_scores_worked_out_by_hand(answers, predicted, exact, f1):
    assert squad_exact_match(answers, predicted) == exact
    assert squad_f1(answers, predicted) == pytest.approx(f1)


@pytest.mark.parametrize(("answers", "predicted", "f1", "exact"), CMRC_CASES)
def test_chinese_scores_equal_those_of_the_official_script(answers, predicted, f1, exact):
    assert cmrc_f1(answers, predicted) == f1
    assert cmrc_exact_match(answers, predicted) == exact


def test_chinese_is_cut_into_characters_and_words():
    assert chinese_segments("iPhone 4s\u624b\u673a\uff0c\u4ef7$1,000.") == (
        ["iphone", "4s", "\u624b", "\u673a", "\u4ef7", "$", "1,000", "."]
    )


def test_without_a_right_answer_only_silence_scores():
    assert (cmrc_f1([], ""), cmrc_exact_match([], "")) == (1.0, 1.0)
    assert (cmrc_f1([], "\u6709"), cmrc_exact_match([], "\u6709")) == (0.0, 0.0)


def test_gold_answers_of_the_real_file_score_full_marks():
    path = Path(__file__).parents[3] / "shared/data/tasks/cmrc2018/cmrc2018_trial.json"
    if not path.is_file():
        pytest.skip("the data set is not here")
    found = json.loads(path.read_text(encoding="utf-8"))["data"]
    answers = [
        [answer["text"] for answer in question["answers"]]
        for article in found[:20]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    assert all(cmrc_f1(group, group[-1]) == 1.0 for group in answers)
    assert all(cmrc_exact_match(group, group[-1]) == 1.0 for group in answers)
