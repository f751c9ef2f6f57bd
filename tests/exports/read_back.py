"""Reads every export of one store with foreign programs and compares it with the database's own tables."""

import csv
import datetime
import json
import pathlib
import sqlite3
import struct
import sys

import duckdb
from line_protocol_parser import parse_line

COLUMNS = (
    "experiment subject transport policy variant network clients deliveries_per_s payload_bytes "
    "repeat metric unit value bound counts"
).split()
TYPES = dict.fromkeys(COLUMNS, "VARCHAR") | {
    "clients": "UINTEGER",
    "deliveries_per_s": "UINTEGER",
    "payload_bytes": "UINTEGER",
    "repeat": "UINTEGER",
    "value": "DOUBLE",
}
UNITS = {"latency_p50": "ms", "server_cpu": "%", "lost": ""}


def same(name, found, expected):
    """Exact, for floats to the last bit."""
    assert len(found) == len(expected), f"{name}: {len(found)} rows instead of {len(expected)}"
    for index, (one, other) in enumerate(zip(found, expected)):
        assert exact(one) == exact(other), f"{name}, row {index}:\n{one}\ninstead of\n{other}"
    print(f"{name}: {len(found)} rows as in the database")


def exact(row):
    return [struct.pack(">d", value) if isinstance(value, float) else value for value in row]


def figures_of(database):
    query = f"SELECT {', '.join(COLUMNS)} FROM figures_by_cell ORDER BY experiment_id, place, metric"
    rows = []
    for row in database.execute(query):
        row = dict(zip(COLUMNS, row))
        if row["unit"] is None:
            row["unit"] = UNITS[row["metric"]]
        rows.append(tuple(row.values()))
    return rows


def check_csv(folder, figures):
    text = [["" if value is None else value for value in row] for row in figures]
    with open(folder / "figures.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == COLUMNS, header
    kinds = [{"DOUBLE": float, "UINTEGER": lambda text: int(text) if text else ""}.get(TYPES[c], str) for c in COLUMNS]
    same("CSV, Python", [[kind(value) for kind, value in zip(kinds, row)] for row in rows], text)
    found = duckdb.execute(
        "SELECT * FROM read_csv(?, header = true, columns = $2, nullstr = '\\N')".replace("?", "$1"),
        [str(folder / "figures.csv"), {column: "VARCHAR" for column in COLUMNS}],
    ).fetchall()
    found = [["" if value is None else value for value in row] for row in found]
    same("CSV, DuckDB", [[kind(value) for kind, value in zip(kinds, row)] for row in found], text)


def check_parquet(folder, figures):
    table = duckdb.read_parquet(str(folder / "figures.parquet"))
    assert dict(zip(table.columns, map(str, table.types))) == TYPES, list(zip(table.columns, table.types))
    same("Parquet, DuckDB", table.fetchall(), figures)
    mean = duckdb.execute(
        "SELECT count(*), count(variant), sum(clients) FROM read_parquet($1) WHERE counts = 'yes'",
        [str(folder / "figures.parquet")],
    ).fetchone()
    counting = [dict(zip(COLUMNS, row)) for row in figures if row[-1] == "yes"]
    variants = sum(row["variant"] is not None for row in counting)
    assert mean == (len(counting), variants, sum(row["clients"] for row in counting)), mean


def check_points(folder, database, figures):
    starts = dict(database.execute("SELECT repeat, started_at FROM runs"))
    runs = {}
    for row in figures:
        row = dict(zip(COLUMNS, row))
        tags = {name: str(row[name]) for name in COLUMNS[:10] + ["counts"] if row[name] not in (None, "")}
        fields = runs.setdefault(row["repeat"], (tags, {}))[1]
        fields[row["metric"]] = row["value"]
        if row["bound"] is not None:
            fields[row["metric"] + "_bound"] = row["bound"]
    expected = [("pushlab_run", *run, nanoseconds(starts[repeat])) for repeat, run in runs.items()]
    query = "SELECT repeat, columns, rows, data FROM series JOIN runs ON runs.id = run_id WHERE name = 'seconds'"
    for repeat, columns, rows, data in database.execute(query):
        columns = dict(zip(json.loads(columns), decode(data, rows, len(json.loads(columns)))))
        for second in range(rows):
            fields = {name: values[second] for name, values in columns.items() if values[second] is not None}
            at = nanoseconds(starts[repeat]) + second * 1_000_000_000
            expected.append(("pushlab_second", runs[repeat][0], fields, at))
    points = []
    for line in (folder / "points.txt").read_text(encoding="utf-8").splitlines():
        point = parse_line(line)
        points.append((point["measurement"], point["tags"], point["fields"], point["time"]))
    same("line protocol", sorted(map(flat, points)), sorted(map(flat, expected)))


def flat(point):
    measurement, tags, fields, time = point
    fields = [(name, type(value).__name__, exact([value])[0]) for name, value in sorted(fields.items())]
    return [measurement, time, repr(sorted(tags.items())), repr(fields)]


def nanoseconds(instant):
    seconds, _, fraction = instant.removesuffix("Z").partition(".")
    whole = datetime.datetime.fromisoformat(seconds).replace(tzinfo=datetime.timezone.utc)
    return int(whole.timestamp()) * 1_000_000_000 + int(fraction.ljust(9, "0"))


def decode(data, rows, columns):
    """The encoding of series as the documentation of the store's crate describes it."""
    bytes_left = iter(data)

    def varint():
        value = shift = 0
        for byte in bytes_left:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
        raise ValueError("cut short")

    assert (next(bytes_left), varint()) == (1, rows)
    decoded = []
    for _ in range(columns):
        kind = next(bytes_left)
        bits = [next(bytes_left) for _ in range((rows + 7) // 8)] if kind & 2 else [0xFF] * rows
        last, values = 0, []
        for row in range(rows):
            if not bits[row // 8] >> row % 8 & 1:
                values.append(None)
            elif kind & 1:
                last ^= int(f"{varint():064b}"[::-1], 2)
                values.append(struct.unpack(">d", last.to_bytes(8, "big"))[0])
            else:
                step = varint()
                last = (last + (step >> 1 ^ -(step & 1)) + 2**63) % 2**64 - 2**63
                values.append(last)
        decoded.append(values)
    assert next(bytes_left, None) is None
    return decoded


def check_json(folder, figures):
    document = json.loads((folder / "experiments.json").read_text(encoding="utf-8"))
    assert (document["format"], document["version"]) == ("pushlab-results", 1)
    (experiment,) = document["experiments"]
    assert experiment["experiment"]["seed"] == 2**64 - 1
    rows = []
    for run in experiment["runs"]:
        cell = [run["cell"][column] for column in COLUMNS[:9]]
        for metric, figure in sorted(run["figures"].items()):
            # A whole number of JSON is a float all the same.
            rows.append((*cell, run["repeat"], metric, float(figure["value"]), figure.get("bound")))
    same("JSON", rows, [(*row[:11], *row[12:14]) for row in figures])


def main():
    folder = pathlib.Path(sys.argv[1])
    database = sqlite3.connect(f"file:{folder / 'results.db'}?mode=ro", uri=True)
    figures = figures_of(database)
    assert len(figures) > 70, "too few figures to tell anything"
    check_csv(folder, figures)
    check_parquet(folder, figures)
    check_points(folder, database, figures)
    check_json(folder, figures)
    print("4 passed, 0 failed")


main()
