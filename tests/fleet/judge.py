"""Two one-sided tests of whether two and four workers measure what one does: ratios within each repeat, on the log scale."""

import json
import math
import statistics
import sys

from scipy.stats import t

MARGINS = {
    "cpu_per_delivery": 1.05,
    "bytes_per_delivery": 1.05,
    "traffic_per_delivery": 1.05,
    "latency_median": 1.10,
    "latency_mean": 1.10,
    "latency_p99": 1.10,
    "latency_last": 1.10,
}
CONFIDENCE = 0.95
# What takes a run out of the figures.
VOID = {"generator-saturated", "long-turns", "lateness", "subject-restarted", "link-late"}


def figures(path):
    """The figures of each variant's run in each repeat; of runs that are void or failed, nothing."""
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["experiments"][0]["runs"]
    found = {}
    for run in runs:
        warnings = {warning["code"] for warning in run["warnings"]}
        if run["outcome"]["outcome"] == "completed" and not warnings & VOID:
            values = {name: figure["value"] for name, figure in run["figures"].items()}
            found[run["cell"]["variant"], run["repeat"]] = values
    return found


def interval(logs):
    """Mean and half of its interval: the two tests at 5 % each are the interval at 90 %."""
    half = t.ppf(CONFIDENCE, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return statistics.fmean(logs), half


def main():
    found = figures(sys.argv[1])
    is_equivalent = True
    print(f"{'metric':<22} {'workers':<8} {'ratio to one worker':<28} {'margin':<8} blocks")
    for metric, margin in MARGINS.items():
        for variant in ("two", "four"):
            logs = []
            for (name, repeat), values in found.items():
                one = found.get(("one", repeat), {})
                if name == variant and values.get(metric) and one.get(metric):
                    logs.append(math.log(values[metric] / one[metric]))
            if len(logs) < 3:
                print(f"{metric:<22} {variant:<8} too few repeats count: {len(logs)}")
                is_equivalent = False
                continue
            mean, half = interval(logs)
            low, high = math.exp(mean - half), math.exp(mean + half)
            is_within = 1 / margin < low and high < margin
            is_equivalent &= is_within
            ratio = f"{math.exp(mean):.4f} ({low:.4f} – {high:.4f})"
            verdict = "equivalent" if is_within else "NOT SHOWN"
            print(f"{metric:<22} {variant:<8} {ratio:<28} {margin:<8} {len(logs)}  {verdict}")
    sys.exit(0 if is_equivalent else 1)


main()
