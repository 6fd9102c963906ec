from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from examples.flights import data


class Recorded:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> Any:
        self.objects[f"{Bucket}/{Key}"] = Body


def test_a_day_has_the_original_rows_of_its_source() -> None:
    header, first, *rest = data.flights_csv(date(2013, 1, 1)).decode().splitlines()

    assert header.startswith("year,month,day,dep_time,sched_dep_time") and header.endswith("time_hour")
    assert first.startswith("2013,1,1,517,515,2,830,819,11,UA,1545,")
    assert len(rest) == 841 and any(",NA," in line for line in rest)


def test_the_days_of_the_year_make_up_the_whole_table() -> None:
    days = [date.fromordinal(data.FIRST_DAY.toordinal() + i) for i in range(365)]

    assert sum(data.flights_csv(day).count(b"\n") - 1 for day in days) == 336_776
    assert sum(data.weather_csv(day).count(b"\n") - 1 for day in days) == 26_115


def test_a_day_is_uploaded_in_parts_with_the_done_flag_last() -> None:
    s3 = Recorded()
    keys = data.upload_day(s3, "lake", "raw/", date(2013, 1, 1), parts=3)

    folder = "raw/flights/year=2013/month=1/day=1/"
    assert keys[:4] == [f"{folder}part-0000{i}.csv" for i in range(3)] + [f"{folder}_SUCCESS"]
    assert keys[4:][-1] == "raw/weather/year=2013/month=1/day=1/_SUCCESS"
    assert list(s3.objects) == [f"lake/{key}" for key in keys]
    bodies = [s3.objects[f"lake/{key}"].splitlines() for key in keys[:3]]
    assert len({body[0] for body in bodies}) == 1
    lines = [line for body in bodies for line in body[1:]]
    assert lines == data.flights_csv(date(2013, 1, 1)).splitlines()[1:]


def test_the_last_day_has_a_weather_file_with_the_header_alone() -> None:
    s3 = Recorded()
    keys = data.upload_day(s3, "lake", "", date(2013, 12, 31), kinds=["weather"])

    assert [key.rsplit("/")[-1] for key in keys] == ["part-00000.csv", "_SUCCESS"]
    assert s3.objects[f"lake/{keys[0]}"].startswith(b"origin,") and s3.objects[f"lake/{keys[0]}"].count(b"\n") == 1


def test_keys_are_not_padded() -> None:
    assert data.partition_key("a/", date(2013, 1, 9)) == "a/year=2013/month=1/day=9/"


def test_reference_tables_are_whole() -> None:
    assert [data.reference_csv(table).count(b"\n") - 1 for table in data.REFERENCE] == [16, 3322, 1458]


def test_a_missing_day_is_refused_before_any_upload() -> None:
    s3 = Recorded()
    with pytest.raises(ValueError, match="expected a day of 2013, got 2014-01-01"):
        data.upload_day(s3, "lake", "raw/", date(2014, 1, 1))
    with pytest.raises(ValueError, match="expected a kind of flights, weather, got 'rain'"):
        data.upload_day(s3, "lake", "raw/", date(2013, 1, 1), kinds=["flights", "rain"])
    with pytest.raises(ValueError, match="expected at least 1 part, got 0"):
        data.upload_day(s3, "lake", "raw/", date(2013, 1, 1), parts=0)
    with pytest.raises(ValueError, match="expected a table of airlines, planes, airports, got 'x'"):
        data.reference_csv("x")
    assert not s3.objects
