"""Two one-sided tests of whether the length of the idle phase changes the median response time: ratios of each round's means."""

import json
import math
import pathlib
import statistics
import sys

from scipy.stats import t

MARGIN = 1.10
CONFIDENCE = 0.95
METRIC = "response_median"


def means(path):
    """The mean over the repeats of each transport, on the log scale; runs without the figure count for nothing."""
    runs = json.loads(path.read_text(encoding="utf-8"))["experiments"][0]["runs"]
    found = {}
    for run in runs:
        if METRIC in run["figures"]:
            found.setdefault(run["cell"]["transport"], []).append(math.log(run["figures"][METRIC]["value"]))
    return {transport: statistics.fmean(values) for transport, values in found.items()}


def main():
    folder = pathlib.Path(sys.argv[1])
    ratios, levels = {}, {}
    for path in sorted(folder.glob("none-*.json")):
        one, other = means(path), means(folder / path.name.replace("none", "later"))
        for transport in one.keys() & other.keys():
            ratios.setdefault(transport, []).append(other[transport] - one[transport])
            levels.setdefault(transport, []).extend([math.exp(one[transport]), math.exp(other[transport])])
    is_equivalent = len(ratios) == 3
    for transport, logs in sorted(ratios.items()):
        if len(logs) < 3:
            print(f"{transport:<14} too few rounds count: {len(logs)}")
            is_equivalent = False
            continue
        mean = statistics.fmean(logs)
        half = t.ppf(CONFIDENCE, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        low, high = math.exp(mean - half), math.exp(mean + half)
        is_within = 1 / MARGIN < low and high < MARGIN
        is_equivalent &= is_within
        level = statistics.fmean(levels[transport])
        verdict = "equivalent" if is_within else "NOT SHOWN"
        print(f"{transport:<14} {level:.3f} ms, 1,005 over 1,000 ms: {math.exp(mean):.3f} ({low:.3f} – {high:.3f})  {verdict}")
    sys.exit(0 if is_equivalent else 1)


main()
