"""Predictions: equal to transformers', one for each row, in order, whatever the row is."""

import json
import os
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
import torch
import transformers
from toy_tasks import questions, write_lines, write_model
from tuned_models import LABELS, tune

import amber.downstream.predict as module
from amber.downstream.predict import hand_in, open_prediction, predict_rows
from amber.downstream.predict_config import PredictConfig
from amber.downstream.tuned_model import open_tuned
from amber.errors import RunError, UserError
from amber.run.device import Process
from amber.tasks.clue import TNEWS_CLASSES
from amber.tasks.config import DataColumns
from amber.tasks.named import find_task
from amber.tasks.submission import write_submission

transformers.logging.disable_progress_bar()
AUTO = transformers.AutoModelForSequenceClassification  # imported once, before the tests
CPU = Process(rank=0, num_ranks=1, device=torch.device("cpu"), dtype=torch.float32)
SENTENCES = ["good one two", "bad three is round", "one", "who is anna", "red red red red"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


def rows_for(model: Path, file: Path, *, own: DataColumns | None = None, **settings):
    batch_size = settings.pop("batch_size", 0)
    config = PredictConfig(model=model, file=file, own=own or DataColumns(), **settings)
    return list(predict_rows(open_prediction(config), CPU, batch_size=batch_size))


def probability(row: module.Row) -> float:
    return row.fields["probability"]


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_labels_and_probabilities_are_those_of_the_pipeline(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "classification")
    pipeline = transformers.pipeline("text-classification", model=str(folder))
    rows = rows_for(folder, write(tmp_path / "a.txt", *SENTENCES))
    assert len({row.value for row in rows}) > 1
    for row, text in zip(rows, SENTENCES, strict=True):
        best, *_ = theirs = pipeline(text, top_k=None)
        assert row.fields["label"] == best["label"]
        assert row.fields["probability"] == pytest.approx(best["score"], abs=1e-5)
        expected = {each["label"]: each["score"] for each in theirs}
        assert row.fields["probabilities"] == pytest.approx(expected, abs=1e-5)


def test_words_are_joined_as_in_the_training(model: Path, tmp_path: Path):
    mixed = write(tmp_path / "a.tsv", "anna", "好", "", "好", "one")
    apart = [row.fields["text"] for row in rows_for(tune(tmp_path / "m", model, "tagging"), mixed)]
    assert apart == ["anna 好", "好 one"]
    for name, own in (("resume", {}), ("own", {"own": {"kind": "tagging"}})):
        folder = tune(tmp_path / name, model, "tagging", joiner="", **({"task": name} | own))
        assert [row.fields["text"] for row in rows_for(folder, mixed)] == ["anna好", "好one"]


def test_entities_are_handed_in_with_their_places(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "tagging", task="cluener", own={})
    records = [{"id": 4, "text": "good one bad"}, {"id": 7, "text": "anna"}]
    path = write_lines(tmp_path / "test.jsonl", records)
    config = PredictConfig(model=folder, file=path, submission=tmp_path / "sub")
    prediction = open_prediction(config)
    rows = list(predict_rows(prediction, CPU))
    handed_in = hand_in(prediction, rows, tmp_path / "sub")
    assert handed_in.name == "cluener_predict.json"
    lines = [json.loads(line) for line in handed_in.read_text().splitlines()]
    assert [line["id"] for line in lines] == [4, 7]
    tags = [word["tag"] for row in rows for word in row.fields["words"]]
    for row, line in zip(rows, lines, strict=True):
        spans = [
            [each["start"], each["end"] - 1]
            for each in row.fields["entities"]
            if each["text"] == row.fields["text"][each["start"] : each["end"]]
        ]
        handed = [place for these in line["label"].get("PER", {}).values() for place in these]
        assert sorted(spans) == sorted(handed)
    found = [line["label"].get("PER", {}) for line in lines]
    places = [place for part in found for these in part.values() for place in these]
    assert sum(last - first + 1 for first, last in places) >= sum(tag != "O" for tag in tags) > 0
    for record, part in zip(records, found, strict=True):
        for text, these in part.items():
            assert all(record["text"][first : last + 1] == text for first, last in these)


def test_a_tagger_reads_plain_text(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "tagging", joiner=" ")
    texts = ["anna is good.", "", "bad one"]
    path = write(tmp_path / "a.txt", *texts)
    records = [{"id": f"r{number}", "text": text} for number, text in enumerate(texts)]
    table = write_lines(tmp_path / "a.jsonl", records)
    one_run = write(tmp_path / "c.txt", "anna", "is")
    rows = rows_for(folder, path)
    assert [row.fields["text"] for row in rows] == texts
    assert [row.is_blank for row in rows] == [False, True, False]
    words = [[word["word"] for word in row.fields["words"]] for row in rows]
    assert words == [["anna", "is", "good", "."], [], ["bad", "one"]]
    lists = [{"words": these, "text": "unused"} for these in words if these]
    listed = rows_for(folder, write_lines(tmp_path / "b.jsonl", lists))
    assert [row.value for row in listed] == [row.value for row in rows if not row.is_blank]
    again = rows_for(folder, table, own=DataColumns(id="id"))
    assert [row.id for row in again] == ["r0", "r1", "r2"]
    assert [row.value for row in again] == [row.value for row in rows]
    named = tune(tmp_path / "n", model, "tagging", joiner=" ", task="wnut17", own={})
    assert [row.value for row in rows_for(named, path)] == [row.value for row in rows]
    for number, told in enumerate(({"joiner": ""}, {"joiner": "", "task": "cluener", "own": {}})):
        by_character = tune(tmp_path / f"c{number}", model, "tagging", **told)
        assert len(rows_for(by_character, path)[0].value) == len("annaisgood.")
        assert [len(row.value) for row in rows_for(by_character, one_run)] == [4, 2]


def test_a_blank_line_of_a_trec_file_is_a_row(model: Path, tmp_path: Path):
    labels = find_task("trec").labels
    folder = tune(tmp_path / "m", model, "classification", labels=labels, task="trec", own={})
    rows = rows_for(folder, write(tmp_path / "TREC_10.label", "NUM:dist one", "", "HUM:ind two"))
    assert [(row.id, row.is_blank) for row in rows] == [("0", False), ("1", True), ("2", False)]


def test_pairs_are_those_of_the_pipeline(model: Path, tmp_path: Path):
    own = {"kind": "classification", "pair": "other"}
    folder = tune(tmp_path / "m", model, "classification", own=own)
    pipeline = transformers.pipeline("text-classification", model=str(folder))
    path = write(tmp_path / "a.tsv", "text\tother", "good one\ttwo", "bad\tred is round")
    for row in rows_for(folder, path):
        first, second = path.read_text().splitlines()[1 + int(row.id)].split("\t")
        expected = pipeline({"text": first, "text_pair": second}, top_k=None)[0]
        assert (row.value, row.fields["probability"]) == (
            expected["label"],
            pytest.approx(expected["score"], abs=1e-5),
        )
    with pytest.raises(UserError, match=r"a\.txt: a line of plain text is one sentence, but"):
        rows_for(folder, write(tmp_path / "a.txt", "good"))


def test_tags_are_those_of_the_pipeline_with_the_words_and_their_places(
    model: Path, tmp_path: Path
):
    folder = tune(tmp_path / "m", model, "tagging")
    pipeline = transformers.pipeline(
        "token-classification", model=str(folder), ignore_labels=[], aggregation_strategy="none"
    )
    records = [{"words": text.split()} for text in SENTENCES]
    rows = rows_for(folder, write_lines(tmp_path / "a.jsonl", records))
    assert len(set(chain.from_iterable(row.value for row in rows))) > 1
    for row, text in zip(rows, SENTENCES, strict=True):
        assert row.fields["text"] == text
        expected = [(each["entity"], each["start"], each["end"]) for each in pipeline(text)]
        assert [(w["tag"], w["start"], w["end"]) for w in row.fields["words"]] == expected
        assert all(w["word"] == text[w["start"] : w["end"]] for w in row.fields["words"])


def test_every_line_has_its_row_at_its_place(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tune(tmp_path / "m", model, "classification")
    lines = ["good one", "", "bad two", "good one", "  \t ", "two " * 5000, "\u200b", "bad", ""]
    path = write(tmp_path / "a.txt", *lines)
    whole = rows_for(folder, path)
    assert [row.id for row in whole] == [str(number) for number in range(9)]
    assert [row.is_blank for row in whole] == [not line.strip("\u200b\t ") for line in lines]
    assert whole[1].fields == {"id": "1", "label": None, "probability": None, "probabilities": None}
    assert whole[3].fields == whole[0].fields | {"id": "3"}
    monkeypatch.setattr(module, "CHUNK", 2)
    cut = rows_for(folder, path, batch_size=1)
    assert [row.value for row in cut] == [row.value for row in whole]
    alone = rows_for(folder, write(tmp_path / "b.txt", lines[2]))
    assert alone[0].fields["probability"] == pytest.approx(cut[2].fields["probability"], abs=1e-6)


def test_tags_of_the_file_are_not_read(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "tagging")
    named = tune(tmp_path / "n", model, "tagging", task="resume", own={})
    plain = rows_for(folder, write(tmp_path / "a.tsv", "anna", "is", "", "paris"))
    for each in (folder, named):
        tagged = write(tmp_path / "b.tsv", "anna B-GOD", "is O", "", "paris S-GOD")
        assert [row.value for row in rows_for(each, tagged)] == [row.value for row in plain]


def test_a_classifier_from_elsewhere_reads_as_much_as_its_tokenizer_says(
    model: Path, tmp_path: Path
):
    folder, path = tune(tmp_path / "m", model, "classification"), tmp_path / "m" / "config.json"
    settings = json.loads(path.read_text())
    del settings["amber"]  # as a folder that transformers wrote
    path.write_text(json.dumps(settings))
    assert open_tuned(folder).length == 64  # as there are positions
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": 20}))
    assert open_tuned(folder).length == 20
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": int(1e30)}))
    assert open_tuned(folder).length == 64
    path.write_text("[]")
    with pytest.raises(UserError, match=r"tokenizer_config\.json: not a JSON object"):
        open_tuned(folder)


def test_answers_are_parts_of_their_contexts(model: Path, tmp_path: Path):
    records = [
        {"question": "who", "context": "one  two\n\u4e09 anna, (paris) is  round " * 4},
        {"question": "who", "context": "\u200b "},
        *questions(count=4),
    ]
    path = write_lines(tmp_path / "a.jsonl", records)
    for head in ("hugging_face", "official"):
        folder = tune(tmp_path / head, model, "qa", head=head)
        rows = rows_for(folder, path)
        assert [row.is_blank for row in rows] == [False, True, *[False] * 4]
        assert rows[1].fields["answer"] is None
        for row, record in zip(rows, records, strict=True):
            if row.value:
                start, end = row.fields["start"], row.fields["end"]
                assert record["context"][start:end] == row.fields["answer"] == row.value
        assert sum(bool(row.value) for row in rows) == 5


def test_a_threshold_of_no_answer_is_kept(model: Path, tmp_path: Path):
    path = write_lines(tmp_path / "a.jsonl", questions(count=4))
    bold = rows_for(tune(tmp_path / "m", model, "qa", threshold=1e9), path)
    shy = rows_for(tune(tmp_path / "n", model, "qa", threshold=-1e9), path)
    assert all(row.value for row in bold)
    assert not any(row.value or row.fields["start"] for row in shy)
    assert [row.fields["score"] for row in bold] == [row.fields["score"] for row in shy]


def test_repeated_questions_of_a_squad_file_keep_their_places(model: Path, tmp_path: Path):
    items = [{"id": name, "question": "who is"} for name in ("b", "a", "b", None)]
    content = {"data": [{"paragraphs": [{"context": "anna is good", "qas": items}]}]}
    path = write(tmp_path / "a.json", json.dumps(content))
    for task in ("own", "squad2"):
        rows = rows_for(tune(tmp_path / task, model, "qa", task=task), path)
        assert [row.id for row in rows] == ["b", "a", "b", "data[0].paragraphs[0].qas[3]"]
        assert rows[0].fields == rows[2].fields


def test_a_table_is_read_as_one_whatever_the_task_of_the_training(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "tagging", task="conll2003")
    words = write(tmp_path / "a.jsonl", json.dumps({"words": ["good", "one"]}))
    plain = rows_for(folder, write(tmp_path / "a.txt", "good", "one"))
    assert [row.fields for row in rows_for(folder, words)] == [row.fields for row in plain]
    with pytest.raises(UserError, match="no column 'words'"):
        rows_for(folder, write(tmp_path / "a.json", json.dumps({"data": []})))
    folder = tune(tmp_path / "n", model, "qa", task="squad2")
    asked = write(tmp_path / "b.csv", "question,context", "who,anna is good")
    assert len(rows_for(folder, asked)) == 1


def test_several_labels_have_a_probability_each(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "multilabel")
    rows = rows_for(folder, write(tmp_path / "a.txt", *SENTENCES))
    assert len({row.value for row in rows}) > 1
    pipeline = transformers.pipeline("text-classification", model=str(folder))
    for row, text in zip(rows, SENTENCES, strict=True):
        expected = {each["label"]: each["score"] for each in pipeline(text, top_k=None)}
        assert row.fields["probabilities"] == pytest.approx(expected, abs=1e-5)
        chosen = [name for name in LABELS["multilabel"] if expected[name] > 0.5]
        assert row.fields["labels"] == list(row.value) == chosen
        assert row.fields["label_probabilities"] == pytest.approx([expected[n] for n in chosen])


def test_a_number_is_what_the_network_gives(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "regression")
    row = rows_for(folder, write(tmp_path / "a.txt", "good one"))[0]
    network, tokenizer = AUTO.from_pretrained(folder), transformers.AutoTokenizer
    ids = tokenizer.from_pretrained(folder)("good one", return_tensors="pt")["input_ids"]
    assert row.value == pytest.approx(network(ids).logits.item(), abs=1e-5)
    assert row.fields == {"id": "0", "value": row.value}


def test_labels_in_the_file_are_not_read(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "classification")
    path = write(tmp_path / "a.tsv", "text\tlabel", "good one\tnever seen", "bad\t")
    plain = rows_for(folder, write(tmp_path / "a.txt", "good one", "bad"))
    assert [row.fields for row in rows_for(folder, path)] == [row.fields for row in plain]


def test_columns_can_be_named_and_ids_are_kept(model: Path, tmp_path: Path):
    own = {"kind": "classification", "id": "key"}
    folder = tune(tmp_path / "m", model, "classification", own=own)
    path = write(tmp_path / "a.csv", "key,said,text", 'x,"good, one",bad', "y,bad,bad")
    rows = rows_for(folder, path, own=DataColumns(text="said"))
    assert [row.id for row in rows] == ["x", "y"]
    assert abs(probability(rows[0]) - probability(rows[1])) > 1e-3
    bare = rows_for(folder, write(tmp_path / "b.tsv", "text", "bad"))
    assert probability(bare[0]) == pytest.approx(probability(rows[1]), abs=1e-6)
    with pytest.raises(UserError, match="no column 'sayd'; did you mean 'said'"):
        rows_for(folder, path, own=DataColumns(text="sayd"))
    with pytest.raises(UserError, match="own.label has no effect"):
        rows_for(folder, path, own=DataColumns(label="text"))


def test_rows_of_empty_cells_keep_their_places(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "classification")
    lines = ["text\tlabel", "good one\tx", "\t", "bad\tx", "\t"]
    for name, mark in (("a.tsv", "\t"), ("a.csv", ",")):
        rows = rows_for(
            folder, write(tmp_path / name, *[each.replace("\t", mark) for each in lines])
        )
        assert [row.is_blank for row in rows] == [False, True, False, True]
    lines = ["index\tsentence", "0\tgood", "\t", "2\tbad", "\t"]
    rows = rows_for(glue_model(tmp_path / "n", model), write(tmp_path / "b.tsv", *lines))
    assert [row.is_blank for row in rows] == [False, True, False, True]


def test_an_id_that_was_named_must_be_there(model: Path, tmp_path: Path):
    folder = tune(tmp_path / "m", model, "classification")
    path = write(tmp_path / "a.tsv", "key\ttext", "k\tgood")
    assert rows_for(folder, path, own=DataColumns(id="key"))[0].id == "k"
    with pytest.raises(UserError, match="no column 'kex'; did you mean 'key'"):
        rows_for(folder, path, own=DataColumns(id="kex"))


def test_a_model_of_single_texts_reads_no_pairs_nor_the_reverse(model: Path, tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\tother", "good\tbad")
    single = tune(tmp_path / "m", model, "classification")
    with pytest.raises(UserError, match="was trained on single texts: it cannot read pairs"):
        rows_for(single, path, own=DataColumns(pair="other"))
    pairs = tune(tmp_path / "n", model, "classification", labels=("0", "1"), task="mrpc", own={})
    with pytest.raises(UserError, match="was trained on pairs of texts: name the second text with"):
        rows_for(pairs, path, own=DataColumns(text="text"))
    assert len(rows_for(pairs, path, own=DataColumns(text="text", pair="other"))) == 1


def test_a_pipe_is_refused(model: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(
        UserError, match="pipe: not a regular file: write what it gives into a file"
    ):
        rows_for(glue_model(tmp_path / "m", model), tmp_path / "pipe")


def glue_model(folder: Path, model: Path) -> Path:
    return tune(folder, model, "classification", labels=("0", "1"), task="cola", own={})


def test_a_named_task_gives_the_file_of_its_leaderboard(model: Path, tmp_path: Path):
    folder = glue_model(tmp_path / "m", model)
    data = tmp_path / "glue" / "CoLA"
    data.mkdir(parents=True)
    write(data / "train.tsv", "x\t1\t\tgood one")
    write(data / "test.tsv", "index\tsentence", "5\tgood one", "3\tbad two", '9\t"quoted')
    config = PredictConfig(model=folder, file=tmp_path / "glue", submission=tmp_path / "sub")
    prediction = open_prediction(config)
    rows = list(predict_rows(prediction, CPU))
    path = hand_in(prediction, rows, tmp_path / "sub")
    assert [row.id for row in rows] == ["5", "3", "9"]
    assert {row.value for row in rows} <= {"0", "1"}
    expected = write_submission(
        find_task("cola"), {row.id: row.value for row in rows}, tmp_path / "by-hand"
    )
    assert path == tmp_path / "sub" / "CoLA.tsv"
    assert path.read_bytes() == expected.read_bytes()
    assert path.read_text().startswith(f"index\tprediction\n5\t{rows[0].value}\n")
    assert {each.name for each in tmp_path.iterdir()} == {"m", "glue", "sub", "by-hand"}
    with pytest.raises(UserError, match="several rows have the id 5, and a leaderboard takes one"):
        hand_in(prediction, [*rows, rows[0]], tmp_path / "sub")
    with pytest.raises(UserError, match="CoLA.tsv: cannot be written"):
        hand_in(prediction, rows, path)
    trained_on = rows_for(folder, data / "train.tsv")
    assert probability(trained_on[0]) == pytest.approx(probability(rows[0]), abs=1e-6)
    assert rows_for(folder, tmp_path / "glue", split="train")[0].fields == trained_on[0].fields
    with pytest.raises(UserError, match=r"CoLA: no dev file of cola \(looked for dev.tsv\)"):
        rows_for(folder, tmp_path / "glue", split="dev")


def test_records_under_another_name_are_read_as_those_of_the_task(model: Path, tmp_path: Path):
    names = tuple(TNEWS_CLASSES.values())
    folder = tune(tmp_path / "m", model, "classification", labels=names, task="tnews", own={})
    text = json.dumps({"id": 7, "sentence": "good one", "keywords": ""})
    rows = rows_for(folder, write(tmp_path / "mine.json", text))
    assert [row.id for row in rows] == ["7"]
    plain = rows_for(folder, write(tmp_path / "mine.tsv", "good one\t100"))
    assert plain[0].value == rows[0].value
    with pytest.raises(UserError, match="split is none: the files of tnews are train, dev, test"):
        rows_for(folder, tmp_path, split="none")


def test_what_no_leaderboard_takes_is_refused_before_the_work(model: Path, tmp_path: Path):
    path = write(tmp_path / "test.tsv", "index\tsentence", "0\tgood one")
    foreign = tune(tmp_path / "n", model, "classification")
    with pytest.raises(UserError, match="the label 'negative', which is none of task cola"):
        rows_for(foreign, path, task="cola", submission=tmp_path / "sub")
    with pytest.raises(UserError, match="submission has no effect on the test file of task own"):
        rows_for(foreign, write(tmp_path / "a.txt", "good"), submission=tmp_path / "sub")
    with pytest.raises(UserError, match="task conll2003 is for tagging, but"):
        rows_for(foreign, path, task="conll2003")
    folder = glue_model(tmp_path / "m", model)
    with pytest.raises(UserError, match="split has no effect on .*test.tsv, which is one file"):
        rows_for(folder, path, split="dev")


def test_what_cannot_be_predicted_is_said_in_one_line(model: Path, tmp_path: Path):
    path = write(tmp_path / "a.txt", "good")
    with pytest.raises(UserError, match="the folder holds no fine-tuned classifier"):
        rows_for(model, path)
    folder = tune(tmp_path / "m", model, "classification")
    with pytest.raises(UserError, match=r"none\.txt: no such file or folder"):
        rows_for(folder, tmp_path / "none.txt")
    config = PredictConfig(model=folder, file=path)
    prediction = open_prediction(config)
    prediction.tuned.model.head.output.bias.data[0] = torch.nan
    with pytest.raises(RunError, match="a score is no number"):
        list(predict_rows(prediction, CPU))
    with pytest.raises(UserError, match=r"name a file that ends in .jsonl or .tsv"):
        replace(config, out=tmp_path / "a.csv")
