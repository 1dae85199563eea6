import hashlib
import random
from collections import Counter

from amber.text.clean import document_key
from amber.text.corpus import ReadingRule, read_corpus
from amber.text.files import find_sources
from amber.text.keys import KeySet
from amber.text.sample import HashSample

DOCUMENTS = [f"document {n}\nwith two lines" for n in range(300)]


def corpus(folder, documents, num_files, **rule):
    folder.mkdir()
    for n in range(num_files):
        text = "\n\n".join(documents[n::num_files])
        (folder / f"{n}.txt").write_text(text)
    counts = Counter()
    sources = find_sources([folder]).sources
    return list(read_corpus(sources, ReadingRule(**rule), counts=counts)), counts


def test_what_is_kept_and_held_out_does_not_depend_on_order_and_files(tmp_path):
    doubled = DOCUMENTS + [d.replace("\n", " \r\n ") for d in DOCUMENTS[:50]]
    one, counts = corpus(tmp_path / "one", doubled, 1, held_out_fraction=0.1)
    random.Random(0).shuffle(doubled)
    many, _ = corpus(tmp_path / "many", doubled, 7, held_out_fraction=0.1)
    assert {(d.text, d.is_held_out) for d in one} == {(d.text, d.is_held_out) for d in many}
    assert len(one) == len(many) == 300
    assert counts["documents_duplicate"] == 50
    assert 10 < sum(d.is_held_out for d in one) < 60


def test_duplicates_stay_when_they_are_wanted(tmp_path):
    kept, counts = corpus(tmp_path / "c", DOCUMENTS + DOCUMENTS[:3], 1, dedup=False)
    assert len(kept) == 303
    assert counts["documents_duplicate"] == 0


def test_a_small_corpus_has_one_held_out_document_unless_none_is_wanted(tmp_path):
    two, _ = corpus(tmp_path / "two", ["a", "b"], 1, held_out_fraction=1e-6)
    assert sorted(d.is_held_out for d in two) == [False, True]
    again, _ = corpus(tmp_path / "again", ["b", "a"], 1, held_out_fraction=1e-6)
    assert {d.text for d in two if d.is_held_out} == {d.text for d in again if d.is_held_out}
    none, _ = corpus(tmp_path / "none", ["a", "b"], 1, held_out_fraction=0.0)
    assert not any(d.is_held_out for d in none)


def test_copies_of_the_document_with_the_smallest_key_are_held_out_with_it(tmp_path):
    rule = {"dedup": False, "held_out_fraction": 1e-9}
    letters = sorted("abcdef", key=document_key)
    for n, texts in enumerate(([*letters, *letters], letters[::-1] * 2, letters[:1] * 3 + letters)):
        kept, _ = corpus(tmp_path / str(n), texts, 1, **rule)
        assert sorted(d.text for d in kept) == sorted(texts)
        held_out = [d.text for d in kept if d.is_held_out]
        assert held_out == [letters[0]] * texts.count(letters[0])
    same, _ = corpus(tmp_path / "same", ["a", "a"], 1, **rule)
    assert [d.is_held_out for d in same] == [False, False]


def test_one_of_three_identical_lines_and_a_variant_remains(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfsame line\nsame line  \r\nsame line\nsame line")
    rule = ReadingRule(separator="line")
    counts = Counter()
    kept = list(read_corpus(find_sources([tmp_path]).sources, rule, counts=counts))
    assert [d.text for d in kept] == ["same line"]
    assert counts["documents_duplicate"] == 3


def test_key_set_agrees_with_a_python_set():
    rng = random.Random(1)
    keys = [hashlib.md5(str(rng.randrange(5000)).encode()).digest() for _ in range(12_000)]
    keys[5] = keys[4][:15] + b"\0"  # a last byte of zero is a byte like any other
    known, ours = set(), KeySet()
    start = 0
    while start < len(keys):
        batch = keys[start : start + rng.randrange(1, 400)]
        expected = []
        for key in batch:
            expected.append(key not in known)
            known.add(key)
        assert ours.add(batch) == expected
        start += len(batch)
    assert len(ours) == len(known)


def test_the_sample_is_bounded_and_does_not_depend_on_order(tmp_path):
    kept, _ = corpus(tmp_path / "c", DOCUMENTS, 1)
    samples = []
    for order in (kept, kept[::-1], kept + kept):
        sample = HashSample(2000)
        for document in order:
            sample.add(document)
        samples.append(sample.texts())
    assert samples[0] == samples[1] == samples[2]
    assert 2000 <= sum(map(len, samples[0])) < 2000 + 30
