"""Every part of the JSON of fine-tuning is explained in docs/finetune.md."""

from dataclasses import fields
from pathlib import Path

import pytest

from amber.downstream.evaluation import TaskScores
from amber.downstream.results import EpochRecord, FinetuneResult, Point, SeedRun
from amber.downstream.scoring import Baseline
from amber.downstream.statistics import Spread
from amber.downstream.table import TaskAverage, TaskRow, TaskTable
from amber.tasks.by_label import LabelScores, Mistake

PAGE = Path(__file__).parents[2] / "docs" / "finetune.md"
RECORDS = (FinetuneResult, SeedRun, EpochRecord, Point, Spread, Baseline)
TABLES = (TaskTable, TaskRow, TaskAverage, TaskScores, LabelScores, Mistake)


@pytest.mark.parametrize("record", [*RECORDS, *TABLES])
def test_every_field_of_the_results_is_explained(record: type):
    text = PAGE.read_text(encoding="utf-8").partition("## What is written")[2]
    assert not [part.name for part in fields(record) if f"`{part.name}`" not in text]
