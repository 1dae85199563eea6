"""The official layouts of the tasks, in small files."""

import json
from pathlib import Path

import pytest

from amber.errors import UserError
from amber.tasks.load import load_task
from amber.tasks.named import find_task


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def lines(*records: dict) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def labels_of(data, split: str) -> list:
    return [example.label for example in data.splits[split]]


COLA = "gj04\t1\t\tGood one.\ngj04\t0\t*\tBad the one.\n"


def test_cola_has_no_header_in_train_and_one_in_test(tmp_path):
    folder = write(
        tmp_path / "CoLA", train__tsv=COLA, dev__tsv=COLA, test__tsv="index\tsentence\n7\tOne.\n"
    )
    for place in (folder, tmp_path):
        data = load_task(find_task("cola"), place)
        assert [e.text for e in data.splits["train"]] == ["Good one.", "Bad the one."]
        assert labels_of(data, "dev") == ["1", "0"]
        assert [(e.id, e.text, e.label) for e in data.splits["test"]] == [("7", "One.", None)]
        assert data.labels == ("0", "1")


def test_missing_splits_are_left_out_and_no_file_at_all_is_an_error(tmp_path):
    write(tmp_path / "cola", dev__tsv=COLA)
    assert list(load_task(find_task("cola"), tmp_path).splits) == ["dev"]
    with pytest.raises(UserError, match=r"no file of rte .* looked for train\.tsv, dev\.tsv"):
        load_task(find_task("rte"), tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        load_task(find_task("rte"), tmp_path / "no")


MRPC = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
ORIGINAL = f'\ufeff{MRPC}1\t10\t11\tA "b.\tC.\r\n0\t12\t13\tD.\tE.\r\n1\t14\t15\tF.\tG.\r\n'


def test_mrpc_in_its_original_files_is_divided_by_the_list_of_glue(tmp_path):
    write(
        tmp_path,
        msr_paraphrase_train__txt=ORIGINAL,
        msr_paraphrase_test__txt=ORIGINAL,
        dev_ids__tsv="14\t15\n99\t98\n",
    )
    data = load_task(find_task("mrpc"), tmp_path)
    assert [(e.text, e.pair) for e in data.splits["train"]] == [('A "b.', "C."), ("D.", "E.")]
    assert [(e.text, e.label) for e in data.splits["dev"]] == [("F.", "1")]
    assert labels_of(data, "test") == ["1", "0", "1"]


def test_mrpc_without_that_list_has_no_dev(tmp_path):
    write(tmp_path, msr_paraphrase_train__txt=ORIGINAL)
    data = load_task(find_task("mrpc"), tmp_path)
    assert {split: len(examples) for split, examples in data.splits.items()} == {"train": 3}
    assert any("dev_ids.tsv is not there" in note for note in data.notes)


def test_mrpc_in_glues_files_may_have_an_unlabelled_test(tmp_path):
    test = "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t1\t2\tA\tB\n"
    rows = "1\t1\t2\tA\tB\n0\t3\t4\tC\tD\n"
    write(tmp_path, train__tsv=MRPC + rows, dev__tsv=MRPC + rows, test__tsv=test)
    data = load_task(find_task("mrpc"), tmp_path)
    assert labels_of(data, "train") == ["1", "0"]
    assert labels_of(data, "test") == [None]


STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"


def test_stsb_labels_are_numbers(tmp_path):
    rows = "".join(f"{i}\tg\tf\ty\to\ts\ts\tA\tB\t{x}\n" for i, x in enumerate(["5.000", "0"]))
    write(tmp_path, train__tsv=STSB + rows)
    assert labels_of(load_task(find_task("stsb"), tmp_path), "train") == [5.0, 0.0]
    write(tmp_path, train__tsv=STSB + rows.replace("5.000", "five"))
    with pytest.raises(UserError, match=r"train\.tsv, line 2, column 'score': 'five' is not a nu"):
        load_task(find_task("stsb"), tmp_path)


def test_stsb_in_its_original_files_may_have_two_columns_more(tmp_path):
    rows = "main\tf\ty\t1\t2.5\tA, b\tC\nmain\tf\ty\t2\t4\tD\tE\tlicence\turl\n"
    for suffix in ("tsv", "csv"):
        folder = tmp_path / suffix
        write(folder, **{f"sts-train__{suffix}": rows, f"sts-test__{suffix}": rows})
        data = load_task(find_task("stsb"), folder)
        assert labels_of(data, "test") == [2.5, 4.0]
        assert data.splits["train"][0].text == "A, b"


def test_qqp_leaves_out_broken_rows_and_counts_them(tmp_path):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
    rows = "5\t1\t2\tA\tB\t1\n6\t3\t4\tbroken\n7\t5\t6\tC\tD\t0\n"
    write(tmp_path, train__tsv=header + rows, test__tsv="id\tquestion1\tquestion2\n0\tA\tB\n")
    data = load_task(find_task("qqp"), tmp_path)
    assert [e.id for e in data.splits["train"]] == ["5", "7"]
    assert "1 row with too few columns" in data.notes[0]
    assert labels_of(data, "test") == [None]


def test_mnli_has_two_dev_sets_and_the_diagnostic_one(tmp_path):
    header = "index\tsentence1\tsentence2\tlabel1\tgold_label\n"
    row = "0\tA\tB\tneutral\t{}\n"
    folder = write(
        tmp_path / "MNLI",
        train__tsv="index\tsentence1\tsentence2\tlabel1\tgold_label\n"
        + row.format("neutral")
        + row.format("entailment"),
        dev_matched__tsv=header + row.format("contradiction"),
        dev_mismatched__tsv=header + row.format("-") + row.format("entailment"),
        test_matched__tsv="index\tsentence1\tsentence2\n0\tA\tB\n",
        test_mismatched__tsv="index\tsentence1\tsentence2\n5\tA\tB\n",
    )
    write(tmp_path / "AX", AX__tsv="index\tsentence1\tsentence2\n0\tA\tB\n")
    data = load_task(find_task("mnli"), folder)
    assert labels_of(data, "dev") == ["contradiction"]
    assert labels_of(data, "dev_mismatched") == ["entailment"]
    assert data.splits["test_mismatched"][0].id == "5"
    assert labels_of(data, "ax") == [None]
    assert data.labels == ("entailment", "neutral", "contradiction")
    assert [n for n in data.notes if "1 row labelled '-' left out" in n]
    assert list(load_task(find_task("ax"), tmp_path).splits) == ["test"]


def test_a_label_that_the_task_does_not_have_is_named(tmp_path):
    rows = "index\tsentence1\tsentence2\tlabel\n0\tA\tB\tentailment\n1\tA\tB\tnot_entailment\n"
    write(tmp_path, train__tsv=rows, dev__tsv=rows + "2\tA\tB\tneutral\n")
    with pytest.raises(UserError, match=r"dev\.tsv, line 4, column 'label': label 'neutral' is no"):
        load_task(find_task("rte"), tmp_path)


def test_tnews_has_the_names_of_its_classes_whatever_the_file_has(tmp_path):
    record = {"label": "102", "label_desc": "news_entertainment", "sentence": "x"}
    write(
        tmp_path / "tnews_public",
        train__json=lines(record, record | {"label": "116"}),
        dev__tsv="y\tnews_game\n",
        test__json=lines({"id": 3, "sentence": "z"}),
    )
    data = load_task(find_task("tnews"), tmp_path)
    assert labels_of(data, "train") == ["news_entertainment", "news_game"]
    assert labels_of(data, "dev") == ["news_game"]
    assert data.splits["test"][0].id == "3"
    assert len(data.labels) == 15


def test_ocnli_leaves_out_what_the_annotators_did_not_agree_on(tmp_path):
    record = {"sentence1": "a", "sentence2": "b", "label": "neutral", "label0": "x", "id": 4}
    text = lines(record, record | {"label": "-"}, record | {"label": "entailment"})
    write(tmp_path / "ocnli_public", **{"train__50k.json": text})
    data = load_task(find_task("ocnli"), tmp_path)
    assert labels_of(data, "train") == ["neutral", "entailment"]


def test_csl_is_the_keywords_and_the_abstract(tmp_path):
    record = {"id": 1, "abst": "text", "keyword": ["a", "b c"], "label": "0"}
    write(tmp_path / "csl", train__json=lines(record, record | {"label": 1}))
    first, second = load_task(find_task("csl"), tmp_path).splits["train"]
    assert (first.text, first.pair, first.label, second.label) == ("a b c", "text", "0", "1")


def test_cluewsc_marks_the_noun_and_the_pronoun(tmp_path):
    target = {"span1_text": "Ann", "span1_index": 0, "span2_text": "she", "span2_index": 9}
    record = {"target": target, "idx": 0, "label": "true", "text": "Ann said she slept"}
    folder = write(tmp_path / "cluewsc2020", train__json=lines(record, record | {"label": "false"}))
    data = load_task(find_task("cluewsc"), tmp_path)
    assert data.splits["train"][0].text == "_Ann_ said [she] slept"
    write(folder, train__json=lines(record, record | {"text": "Ann has said she slept"}))
    with pytest.raises(UserError, match="line 2, column 'target': 'she' is not at character 9"):
        load_task(find_task("cluewsc"), tmp_path)


def test_trec_is_read_by_its_coarse_classes_in_latin_1(tmp_path):
    text = "DESC:manner How did it start ?\nENTY:dismed What is caf\xe9 ?\n"
    (tmp_path / "train.txt").write_bytes(text.encode("latin-1"))
    data = load_task(find_task("trec"), tmp_path)
    assert labels_of(data, "train") == ["DESC", "ENTY"]
    assert data.splits["train"][1].text == "What is caf\xe9 ?"
    (tmp_path / "train.txt").write_text("DESC:manner How ?\nNo class here\n")
    with pytest.raises(UserError, match=r"train\.txt, line 2, column 1: 'No class here'"):
        load_task(find_task("trec"), tmp_path)


def test_ag_news_in_its_original_csv_joins_title_and_text(tmp_path):
    write(tmp_path, train__csv='"3","Title ""x""","Text, more"\n"4","T","U"\n')
    data = load_task(find_task("agnews"), tmp_path)
    assert data.splits["train"][0].text == 'Title "x" Text, more'
    assert labels_of(data, "train") == ["Business", "Sci/Tech"]


def test_chnsenticorp_has_a_header_in_some_copies(tmp_path):
    write(
        tmp_path,
        train__tsv='label\ttext_a\n1\t"good\n0\tbad\n',
        dev__tsv="good\tpositive\nbad\tnegative\n",
        test__tsv="qid\ttext_a\n4\tx\n",
    )
    data = load_task(find_task("chnsenticorp"), tmp_path)
    assert [(e.text, e.label) for e in data.splits["train"]] == [
        ('"good', "positive"),
        ("bad", "negative"),
    ]
    assert labels_of(data, "dev") == ["positive", "negative"]
    assert (data.splits["test"][0].id, data.splits["test"][0].label) == ("4", None)


def test_tags_of_train_name_the_labels_of_all_splits(tmp_path):
    write(
        tmp_path,
        train__txt="-DOCSTART- -X- -X- O\n\nAnn N NP I-PER\n\nRome N NP I-LOC\nis V VP O\n",
        valid__txt="Ann N NP I-PER\nLee N NP I-PER\n",
        test__txt="Oslo N NP I-LOC\n\nAcme N NP I-ORG\n",
    )
    with pytest.raises(UserError, match=r"test\.txt, line 3, column 'tag': label 'B-ORG'"):
        load_task(find_task("conll2003"), tmp_path)
    (tmp_path / "test.txt").unlink()
    data = load_task(find_task("conll2003"), tmp_path)
    assert data.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert data.splits["dev"][0].tags == ("B-PER", "I-PER")


def test_labels_can_be_those_of_a_trained_model(tmp_path):
    write(tmp_path, dev__tsv=COLA)
    data = load_task(find_task("cola"), tmp_path, labels=("1", "0"))
    assert data.labels == ("1", "0")
    with pytest.raises(UserError, match="label '1' is not among the labels"):
        load_task(find_task("cola"), tmp_path, labels=("yes", "no"))
