"""A model of the probability that a flight departs late: the code that training, evaluation and publication share.

A model is a small document (`Model`), so that serving it needs neither Spark nor this file.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from flight_features import FEATURES, WINDOW_DAYS
from pyspark.ml.classification import LogisticRegression
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from sluice_job import ContextError, RunContext

INPUTS = (*FEATURES, "hour", "distance")
BASELINE = "route_late_share"  # the baseline of a model: the share of late flights of the same route in the week before
HOLDOUT_DAYS = 7  # the last days of a month, on which no model is trained
# A row per airport, as CSV: the quality of its model on the days held out, and whether it exceeds the baseline.
EVALUATION = (
    "origin string, trained_on long, tried_on long, late_share double, area double, baseline double, better boolean"
)
ITERATIONS = 50
REGULARISATION = 0.01


@dataclass(frozen=True)
class Model:
    """``sigmoid(intercept + sum of weight * input)``; ``means`` replace inputs that are null, in the order of
    inputs."""

    origin: str
    inputs: list[str]
    means: list[float]
    weights: list[float]
    intercept: float
    trained_on: int
    regularisation: float

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> Model:
        return cls(**json.loads(text))


class Month(NamedTuple):
    """A calendar month, as in the partition keys ``year`` and ``month``."""

    year: int
    month: int

    @property
    def first(self) -> datetime.date:
        """The first day whose week before lies in the same month, so that its features are complete."""
        return datetime.date(self.year, self.month, 1 + WINDOW_DAYS)

    @property
    def last(self) -> datetime.date:
        return datetime.date(self.year + self.month // 12, self.month % 12 + 1, 1) - datetime.timedelta(days=1)

    @property
    def holdout(self) -> datetime.date:
        """The first day that is held out."""
        return self.last - datetime.timedelta(days=HOLDOUT_DAYS - 1)

    def under(self, root: str) -> str:
        return f"{root}year={self.year}/month={self.month}/"


def month_of(context: RunContext) -> Month:
    """The month of a run: from its correlation or its events, else from the run that triggered it."""
    keys = context.partition("year", "month")
    return Month(int(keys["year"]), int(keys["month"]))


def departed(rows: DataFrame, origin: str | None) -> DataFrame:
    """The flights that departed, of one airport or (None) of all; the delay of the others is unknown."""
    left = rows.where(F.col("dep_delay").isNotNull()).withColumn("label", F.col("late").cast("double"))
    return left if origin is None else left.where(F.col("origin") == origin)


def fit(rows: DataFrame, origin: str, regularisation: float = REGULARISATION) -> Model:
    """Train on ``rows`` (of `departed`, with ``INPUTS``). Raises ContextError without late flights or without
    others."""
    totals = rows.agg(F.count("label"), F.sum("label"), *(F.avg(name) for name in INPUTS)).first()
    count, late, *means = totals or (0, 0)
    if not count or not 0 < late < count:
        raise ContextError(f"expected flights of {origin}, late ones and others, got {late or 0} late of {count}")
    filled = [float(mean or 0.0) for mean in means]
    whole = rows.withColumns({name: _filled(name, mean) for name, mean in zip(INPUTS, filled)})
    vectors = VectorAssembler(inputCols=list(INPUTS), outputCol="features").transform(whole)
    trainer = LogisticRegression(maxIter=ITERATIONS, regParam=regularisation)
    model = trainer.fit(vectors.select("features", "label"))
    weights = [round(float(weight), 10) for weight in model.coefficients]
    intercept = round(float(model.intercept), 10)
    return Model(origin, list(INPUTS), filled, weights, intercept, int(count), regularisation)


def probability(model: Model) -> Column:
    """The probability that a flight is late, from the columns of ``INPUTS``; a column between 0 and 1."""
    if not len(model.inputs) == len(model.means) == len(model.weights):
        sizes = f"{len(model.inputs)} inputs, {len(model.means)} means and {len(model.weights)} weights"
        raise ContextError(f"expected a mean and a weight for each input of a model, got {sizes}; train it again")
    score = F.lit(model.intercept)
    for name, mean, weight in zip(model.inputs, model.means, model.weights):
        score = score + _filled(name, mean) * weight
    return 1 / (1 + F.exp(-score))


def _filled(name: str, mean: float) -> Column:
    return F.coalesce(F.col(name).cast("double"), F.lit(mean))


def area(rows: DataFrame, score: Column) -> float:
    """The area under the ROC curve: the probability that a late flight has a higher score than another. 0.5 is
    chance."""
    scored = rows.select("label", F.coalesce(score.cast("double"), F.lit(0.0)).alias("score"))
    judge = BinaryClassificationEvaluator(rawPredictionCol="score", metricName="areaUnderROC", numBins=0)
    return round(float(judge.evaluate(scored)), 4)


def write_text(spark: SparkSession, text: str, folder: str) -> None:
    """Write one line of text as the only file of a folder, replacing its content."""
    spark.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(folder)


def read_model(spark: SparkSession, folder: str) -> Model:
    """The model that `write_text` wrote. Raises AnalysisException if there is none."""
    row: Any = spark.read.text(folder).first()
    return Model.parse(row["value"])
