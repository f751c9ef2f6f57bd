"""Two one-sided tests of whether one way of hosting the load measures what another does: ratios within each repeat, on the
log scale. As a program: whether four workers measure what one does."""

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
# The same, of a difference beyond the margin: there are several rows, of which none is to be different by chance.
CONFIDENCE_DIFFERENT = 0.99
# What takes a run out of the figures.
VOID = {"generator-saturated", "long-turns", "lateness", "subject-restarted", "link-late"}


def experiments(path):
    """The results of an export, in their order."""
    with open(path, encoding="utf-8") as file:
        return json.load(file)["experiments"]


def figures(run):
    """The figures of a run; of one that is void or failed, nothing."""
    warnings = {warning["code"] for warning in run["warnings"]}
    if run["outcome"]["outcome"] != "completed" or warnings & VOID:
        return None
    return {name: figure["value"] for name, figure in run["figures"].items()}


def interval(logs, confidence=CONFIDENCE):
    """Mean and half of its interval: the two tests at 5 % each are the interval at 90 %."""
    half = t.ppf(confidence, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return statistics.fmean(logs), half


def judge(metric, name, pairs):
    """Prints a row and returns its verdict: whether a metric is the same as a control's to within the margin, or differs by
    more than that, by pairs of both's figures in a repeat."""
    both = [(values.get(metric), control.get(metric)) for values, control in pairs]
    logs = [math.log(value / control) for value, control in both if value and control]
    if len(logs) < 3:
        print(f"{metric:<22} {name:<8} too few repeats count: {len(logs)}")
        return "too few"
    mean, half = interval(logs)
    low, high = math.exp(mean - half), math.exp(mean + half)
    margin = MARGINS[metric]
    verdict = "undecided"
    if 1 / margin < low and high < margin:
        verdict = "equivalent"
    elif abs(mean) - interval(logs, CONFIDENCE_DIFFERENT)[1] > math.log(margin):
        verdict = "different"
    ratio = f"{math.exp(mean):.4f} ({low:.4f} – {high:.4f})"
    print(f"{metric:<22} {name:<8} {ratio:<28} {margin:<8} {len(logs):<7} {verdict}")
    return verdict


def main():
    found = {}
    for run in experiments(sys.argv[1])[0]["runs"]:
        if values := figures(run):
            found[run["cell"]["variant"], run["repeat"]] = values
    print(f"{'metric':<22} {'workers':<8} {'ratio to one worker':<28} {'margin':<8} blocks")
    is_equivalent = True
    # Two publications a second are too few for a 99th percentile.
    for metric in (metric for metric in MARGINS if metric != "latency_p99"):
        pairs = [(values, found.get(("one", repeat), {})) for (name, repeat), values in found.items() if name == "four"]
        is_equivalent &= judge(metric, "four", pairs) == "equivalent"
    sys.exit(0 if is_equivalent else 1)


if __name__ == "__main__":
    main()
