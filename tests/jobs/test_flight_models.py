from __future__ import annotations

import importlib
import json
import math
from datetime import date, timedelta
from typing import Any

import evaluate_models
import explore_delays
import publish_models
import pytest
import train_delays
import training_set
from flight_models import INPUTS, Model, Month, area, fit, month_of, probability, read_model, write_text
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sluice_job import ContextError, RunContext

from examples.flights import data

pandas: Any = importlib.import_module("pandas")  # the package has no types
pytestmark = pytest.mark.spark

JANUARY = Month(2013, 1)
EVERY = 12  # one in twelve of the month's flights: enough to learn from, and quick


def month_csv() -> bytes:
    days = [data.flights_csv(JANUARY.first.replace(day=1) + timedelta(days=n)).splitlines(True) for n in range(31)]
    rows = [row for _, *own in days for row in own]
    return b"".join([days[0][0], *rows[::EVERY]])


def scored(spark: SparkSession, *given: tuple[float, float]) -> DataFrame:
    return spark.createDataFrame(list(given), "label double, score double")


def test_h4_a_month_is_read_from_any_upstream_level(document: Any) -> None:
    month = {"year": "2013", "month": "12"}
    arrived = document(correlation=None, events=[{"kind": "partition", "id": "e", "instant": 0, "dataset": "d.months",
                                                  "path": "s3://lake/m/", "partition": month}])  # fmt: skip
    follows = document(correlation=None, events=[], upstream=document(correlation=None, events=[], upstream=arrived))

    assert month_of(RunContext.parse(follows, str)) == Month(2013, 12)
    assert (Month(2013, 12).last, Month(2013, 2).last) == (date(2013, 12, 31), date(2013, 2, 28))
    assert (Month(2013, 2).first, Month(2013, 2).holdout) == (date(2013, 2, 8), date(2013, 2, 22))
    with pytest.raises(ContextError, match="expected one partition with year, month, got none"):
        month_of(RunContext.parse(document(correlation=None, events=[]), str))


def test_h4_the_area_is_share_of_ordered_pairs_ties_count_half(spark: SparkSession) -> None:
    rows = scored(spark, (1.0, 0.9), (1.0, 0.4), (0.0, 0.4), (0.0, 0.1))
    assert area(rows, F.col("score")) == pytest.approx((2 + 1.5) / 4)
    assert area(rows, -F.col("score")) == pytest.approx(0.5 / 4)
    assert area(rows, F.lit(1.0)) == 0.5


def test_h4_a_model_learns_the_pattern_and_reads_back_unchanged(spark: SparkSession, tmp_path: Any) -> None:
    def flight(number: int) -> tuple[Any, ...]:
        answer = dict.fromkeys(INPUTS) | {"hour": number % 24, "distance": 100, "route_mean_delay": number % 7}
        return (float(number % 24 >= 12), *(None if answer[name] is None else float(answer[name]) for name in INPUTS))

    rows = spark.createDataFrame(list(map(flight, range(240))), ", ".join(f"{n} double" for n in ("label", *INPUTS)))
    model = fit(rows, "JFK")
    write_text(spark, model.text(), f"{tmp_path}/model")
    again = read_model(spark, f"{tmp_path}/model")

    assert again == model == Model.parse(json.dumps(json.loads(model.text())))
    assert (model.trained_on, area(rows, probability(model))) == (240, 1.0)
    first = rows.select(probability(model).alias("p"), *INPUTS).first()
    assert first is not None
    score = model.intercept + sum(
        weight * (mean if first[name] is None else first[name])
        for name, mean, weight in zip(model.inputs, model.means, model.weights, strict=True)
    )
    assert first.p == pytest.approx(1 / (1 + math.exp(-score)))
    assert max(zip((abs(weight) for weight in model.weights), model.inputs, strict=True))[1] == "hour"


def test_h4_from_flights_all_on_time_nothing_is_learned(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(0.0, *[1.0] * len(INPUTS))], ", ".join(f"{n} double" for n in ("label", *INPUTS)))
    with pytest.raises(ContextError, match="got 0 late of 1"):
        fit(rows, "LGA")


def test_h4_a_month_is_published_and_worse_model_changes_nothing(spark: SparkSession, lake: Any, run: Any) -> None:
    lake.put_object(Bucket="lake", Key="months/year=2013/month=1/flights.csv", Body=month_csv())
    roots = {name: lake.root(f"{name}/") for name in ("months", "sets", "models", "evaluation", "published")}
    keys = {"correlation": {"year": "2013", "month": "1"}, "events": []}

    prepared = run(training_set.work, {"months": roots["months"], "output": roots["sets"]}, **keys)
    rows = spark.read.parquet(f"{roots['sets']}year=2013/month=1").cache()
    assert prepared["rows_out"] == rows.count() > 1_500
    assert prepared["held_out"] == rows.where("holdout").count() > 400
    assert {row.holdout for row in rows.where("date >= '2013-01-25'").select("holdout").collect()} == {True}

    learn = {"training_set": roots["sets"], "output": roots["models"], "origin": "LGA"}
    run(train_delays.work, learn, **keys)
    # A model of JFK that contradicts the data, in which more flights are late later in the day.
    reverse = Model("JFK", ["hour"], [12.0], [-1.0], 0.0, 1, 0.0)
    write_text(spark, reverse.text(), f"{roots['models']}year=2013/month=1/origin=JFK/")
    served = Model("JFK", ["hour"], [0.0], [1.0], 0.0, 1, 0.0)
    write_text(spark, served.text(), f"{roots['published']}origin=JFK/")
    judge = {"training_set": roots["sets"], "models": roots["models"], "origins": ["JFK", "LGA"]}
    judged = run(evaluate_models.work, {**judge, "output": roots["evaluation"]}, **keys)
    publish = {"models": roots["models"], "evaluation": roots["evaluation"], "output": roots["published"]}
    done = run(publish_models.work, publish, **keys)

    found = spark.read.csv(f"{roots['evaluation']}year=2013/month=1", header=True, inferSchema=True).collect()
    assert [row.origin for row in found] == ["JFK", "LGA"]
    for row in found:
        held = rows.where("holdout").where(F.col("origin") == row.origin).where("dep_delay is not null").collect()
        assert row.tried_on == len(held)
        ranks = pandas.Series([each.route_late_share or 0.0 for each in held]).rank()
        late = pandas.Series([each.late for each in held])
        pairs = late.sum() * (~late).sum()
        assert row.baseline == pytest.approx((ranks[late].sum() - late.sum() * (late.sum() + 1) / 2) / pairs, abs=1e-4)
    assert judged["better"] == done["published"] == ["LGA"]
    assert read_model(spark, f"{roots['published']}origin=JFK/") == served
    assert read_model(spark, f"{roots['published']}origin=LGA/").origin == "LGA"


def test_h4_an_experiment_reports_the_area_of_each_strength(spark: SparkSession, lake: Any, run: Any) -> None:
    lake.put_object(Bucket="lake", Key="months/year=2013/month=1/flights.csv", Body=month_csv())
    asked = {"months": lake.root("months"), "output": lake.root("tried")}
    month = {"correlation": {"year": "2013", "month": "1"}, "events": []}
    answer = run(explore_delays.work, asked | {"strengths": [0.5]}, **month)

    [row] = spark.read.csv(lake.root("tried/year=2013/month=1"), header=True, inferSchema=True).collect()
    assert (row.regularisation, row.area) == (0.5, answer["area"]) and row.area > 0.5
    with pytest.raises(ContextError, match="list of numbers"):
        run(explore_delays.work, asked | {"strengths": ["strong"]}, **month)


def test_h4_a_model_without_a_weight_for_each_input_is_refused(spark: SparkSession) -> None:
    short = Model("EWR", ["a", "b"], [0.0, 0.0], [1.0], 0.0, 240, 0.1)
    with pytest.raises(ContextError, match="got 2 inputs, 2 means and 1 weights; train it again"):
        probability(short)
