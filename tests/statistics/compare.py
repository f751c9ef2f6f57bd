"""Asks the example `answer` of crates/stats and SciPy the same questions and compares.

Each check states the largest deviation it accepts and in what: relative, absolute, or a share of an interval's width.
Bootstraps draw other resamples than SciPy's, so single ends differ by chance; their mean deviation must be near zero.
"""

import itertools
import json
import math
import subprocess
import sys
import warnings

import numpy as np
from scipy import optimize, stats

SEED = 20_240
SIZES = [2, 3, 4, 5, 7, 8, 10, 20, 50, 200]
SHAPES = {
    "normal": lambda rng, n: rng.normal(50, 5, n),
    "log-normal": lambda rng, n: rng.lognormal(1, 0.7, n),
    "ties": lambda rng, n: rng.integers(1, 5, n).astype(float),
    "negative": lambda rng, n: rng.normal(-3, 40, n),
    # In sixteenths, which JSON carries exactly: the last digit of a million would be a visible share of the spread.
    "offset": lambda rng, n: 1e6 + np.round(16 * rng.normal(0, 1, n)) / 16,
    "constant": lambda rng, n: np.full(n, 0.1),
}
ROUNDS = 5


class Questions:
    """Questions with what their answers must be near; asked all at once."""

    def __init__(self):
        self.asked = []

    def ask(self, check, function, arguments, expected, pick=lambda answer: answer):
        """`expected` and what `pick` takes from the answer are (name, number) lists or single numbers."""
        self.asked.append((check, json.dumps({function: arguments}), expected, pick))

    def answers(self, program):
        lines = "".join(question + "\n" for _, question, _, _ in self.asked)
        done = subprocess.run([program], input=lines, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{program} failed: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]


class Check:
    """The largest and the mean deviation of a function."""

    def __init__(self, tolerance, unit, bias=None):
        self.tolerance, self.unit, self.bias = tolerance, unit, bias
        self.deviations, self.worst, self.worst_question = [], 0.0, ""

    def add(self, found, expected, question):
        """`expected` is a number, or (number, scale) when the deviation is a share of something else."""
        number, scale = expected if isinstance(expected, tuple) else (expected, abs(expected) or 1.0)
        if found is None or not isinstance(found, (int, float)):
            sys.exit(f"no number but {found} for {question[:400]}")
        deviation = (found - number) / scale
        self.deviations.append(deviation)
        if not abs(deviation) <= self.worst:
            self.worst, self.worst_question = abs(deviation), question

    def is_good(self):
        unbiased = self.bias is None or abs(float(np.mean(self.deviations))) <= self.bias
        return bool(self.deviations) and self.worst <= self.tolerance and unbiased


CHECKS = {
    "quantile, type 7": Check(1e-12, "relative"),
    "histogram quantile": Check(1.0, "of 0.1 % + 64 ns"),
    "mean": Check(1e-14, "of the largest value"),
    "variance": Check(1e-10, "relative"),
    "median": Check(1e-14, "relative"),
    "Student quantile": Check(1e-10, "relative"),
    "Student tail": Check(1e-11, "relative"),
    "normal distribution": Check(1e-12, "relative"),
    # Ends near a million are rounded by up to 1e-10, and some half widths are below 1.
    "t interval of a mean": Check(1e-9, "of its half width"),
    "Welch interval": Check(1e-9, "of its half width"),
    "Welch interval, factor": Check(1e-9, "of its half width"),
    "Fieller interval": Check(1e-8, "of its width"),
    "bootstrap of a mean": Check(0.12, "of its width", bias=0.006),
    "bootstrap of a contrast": Check(0.12, "of its width", bias=0.006),
    "bootstrap of a ratio": Check(0.12, "of its width", bias=0.006),
    "Cliff's delta from U": Check(1e-12, "absolute"),
    "ranks with ties": Check(0.0, "absolute"),
    "slope": Check(1e-9, "of its standard error"),
    "slope's interval": Check(1e-9, "of its standard error"),
    "intercept": Check(1e-9, "of its standard error"),
    "r squared": Check(1e-9, "absolute"),
    "trend over blocks": Check(1e-9, "of its standard error"),
    "Theil and Sen's slope": Check(1e-10, "relative"),
    "Holm's correction": Check(1e-12, "relative"),
    "p of Welch's t": Check(1e-9, "relative"),
    "p of the paired t": Check(1e-9, "relative"),
    "p of the rank sum": Check(1e-9, "relative"),
    "p of the rank sum, ties": Check(1e-9, "relative"),
    "p of the rank sum, many": Check(1e-9, "relative"),
    "p of signed ranks": Check(1e-9, "relative"),
    "p of signed ranks, ties": Check(1e-9, "relative"),
    "p of signed ranks, many": Check(1e-9, "relative"),
    "shift of two samples": Check(1e-10, "of the largest value"),
    "shift of pairs": Check(1e-10, "of the largest value"),
}


def samples(rng, sizes=SIZES, without=()):
    for shape, n, _ in itertools.product(SHAPES, sizes, range(ROUNDS)):
        if shape not in without:
            yield shape, SHAPES[shape](rng, n)


def moments(questions, rng):
    for _, values in samples(rng):
        given, largest = {"values": values.tolist()}, float(np.abs(values).max())
        centre = math.fsum(values) / len(values)
        spread = math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
        questions.ask("mean", "moments", given, (centre, largest), lambda answer: answer[0])
        if len(set(values)) > 1:
            questions.ask("variance", "moments", given, spread, lambda answer: answer[1])
        questions.ask("median", "moments", given, float(np.median(values)), lambda answer: answer[2])
        for q in (0.0, 0.05, 0.5, 0.9, 0.99, 1.0, rng.random()):
            given = {"sorted": np.sort(values).tolist(), "q": q}
            questions.ask("quantile, type 7", "quantile", given, float(np.quantile(values, q)))
    for _ in range(100):
        ns = np.exp(rng.uniform(math.log(100), math.log(3e12), rng.integers(1, 400))).astype(int)
        q = rng.choice([0.0, 0.5, 0.9, 0.99, 0.999, 1.0, rng.random()])
        exact = float(np.quantile(ns, q, method="inverted_cdf"))
        given = {"ns": ns.tolist(), "q": float(q)}
        questions.ask("histogram quantile", "histogram", given, (exact, exact / 1000 + 64))


def distributions(questions, rng):
    for _ in range(200):
        freedom, tail = float(np.exp(rng.uniform(0, 8))), float(np.exp(rng.uniform(-25, math.log(0.49))))
        given = {"tail": tail, "freedom": freedom}
        questions.ask("Student quantile", "student_t_quantile", given, float(stats.t.isf(tail, freedom)))
        t = float(np.exp(rng.uniform(-3, 3)))
        questions.ask("Student tail", "student_t_tail", {"t": t, "freedom": freedom}, float(stats.t.sf(t, freedom)))
        z = float(rng.uniform(-12, 6))
        questions.ask("normal distribution", "normal_cdf", {"z": z}, float(stats.norm.cdf(z)))


def ends(questions, check, function, given, low, high, scale):
    questions.ask(check, function, given, (float(low), scale), lambda answer: answer.get("low"))
    questions.ask(check, function, given, (float(high), scale), lambda answer: answer.get("high"))


def expanded(n, t):
    """Confidence of the plain percentile interval that Hesterberg's expansion asks for."""
    return 1 - 2 * stats.norm.cdf(-math.sqrt(n / (n - 1)) * t)


def resampled(data, statistic, confidence, rng):
    found = stats.bootstrap(
        data, statistic, method="percentile", confidence_level=confidence, n_resamples=20_000, vectorized=True,
        rng=rng, batch=2_000,
    ).confidence_interval
    return found.low, found.high


def intervals_of_means(questions, rng):
    for _, values in samples(rng, without=("constant",)):
        n, spread = len(values), float(np.std(values, ddof=1))
        confidence = float(rng.choice([0.9, 0.95, 0.99])) if n < 8 else 0.95
        if spread == 0.0 or n > 50:
            continue
        given = {"values": values.tolist(), "confidence": confidence}
        if n < 8:
            low, high = stats.t.interval(confidence, n - 1, loc=values.mean(), scale=spread / math.sqrt(n))
            ends(questions, "t interval of a mean", "interval_of_mean", given, low, high, (high - low) / 2)
        else:
            level = expanded(n, stats.t.isf((1 - confidence) / 2, n - 1))
            low, high = resampled((values,), np.mean, level, rng)
            ends(questions, "bootstrap of a mean", "interval_of_mean", given, low, high, high - low)


def contrasts(questions, rng):
    sizes = [(2, 3), (3, 3), (4, 7), (5, 20), (8, 8), (10, 15), (20, 20)]
    shapes = [shape for shape in SHAPES if shape != "constant"]
    for (n, m), shape, _ in itertools.product(sizes, shapes, range(ROUNDS)):
        a, b = SHAPES[shape](rng, n), SHAPES[shape](rng, m)
        factor = float(rng.choice([1.0, 0.5, 1.2]))
        if a.std() + b.std() == 0.0:
            continue
        given = {"a": a.tolist(), "factor": factor, "b": b.tolist(), "confidence": 0.95}
        welch = stats.ttest_ind(a, factor * b, equal_var=False)
        if min(n, m) < 8:
            low, high = welch.confidence_interval(0.95)
            name = "Welch interval" if factor == 1.0 else "Welch interval, factor"
            ends(questions, name, "contrast", given, low, high, (high - low) / 2)
        else:
            level = expanded(min(n, m), stats.t.isf(0.025, welch.df))
            of = lambda x, y, axis: np.mean(x, axis) - factor * np.mean(y, axis)
            low, high = resampled((a, b), of, level, rng)
            ends(questions, "bootstrap of a contrast", "contrast", given, low, high, high - low)
        ratios(questions, rng, a, b)


def ratios(questions, rng, a, b):
    """Fieller's bounds are the multiples r at which |mean(a) - r mean(b)| is t standard errors; found by search."""
    n, m, given = len(a), len(b), {"a": a.tolist(), "b": b.tolist(), "confidence": 0.95}
    error_a, error_b, value = a.var(ddof=1) / n, b.var(ddof=1) / m, a.mean() / b.mean()
    freedom = stats.ttest_ind(a, value * b, equal_var=False).df
    t = stats.t.isf(0.025, freedom)
    clear = abs(b.mean()) / math.sqrt(error_b) if error_b > 0 else math.inf
    if clear < 1.5 * t:
        return
    if min(n, m) < 8:
        off = lambda r: (a.mean() - r * b.mean()) ** 2 - t * t * (error_a + r * r * error_b)
        # Far away the left side wins, because b is clear of 0.
        reach = 1.0
        while off(value - reach) < 0 or off(value + reach) < 0:
            reach *= 2
        low = optimize.brentq(off, value - reach, value, xtol=1e-14, rtol=1e-14)
        high = optimize.brentq(off, value, value + reach, xtol=1e-14, rtol=1e-14)
        ends(questions, "Fieller interval", "ratio", given, low, high, high - low)
    elif clear > 4 * t:
        of = lambda x, y, axis: np.mean(x, axis) / np.mean(y, axis)
        low, high = resampled((a, b), of, expanded(min(n, m), t), rng)
        ends(questions, "bootstrap of a ratio", "ratio", given, low, high, high - low)


def effects_and_ranks(questions, rng):
    for shape, a in samples(rng):
        b = SHAPES[shape](rng, int(rng.integers(1, 60)))
        u = stats.mannwhitneyu(a, b, method="asymptotic").statistic if len(set(a) | set(b)) > 1 else len(a) * len(b) / 2
        given = {"a": a.tolist(), "b": b.tolist()}
        expected = (float(2 * u / (len(a) * len(b)) - 1), 1.0)
        questions.ask("Cliff's delta from U", "effect_size", given, expected, lambda answer: answer["delta"])
    for _ in range(50):
        # Without noise within entries, only equal ones tie.
        levels = rng.integers(1, 8, rng.integers(1, 12)) / 10
        entries = [[float(level)] * int(rng.integers(2, 12)) for level in levels]
        for place, expected in enumerate(stats.rankdata(levels, method="min")):
            pick = lambda answer, place=place: answer[place]
            questions.ask("ranks with ties", "rank", {"entries": entries}, (float(expected), 1.0), pick)


def lines(questions, rng):
    for _ in range(100):
        n = int(rng.integers(3, 60))
        x = np.sort(rng.uniform(0, 5_000, n)) if rng.random() < 0.7 else rng.integers(0, 4, n) + np.arange(n) % 2 * 0.5
        y = 800 + rng.normal(0, 1) * x + rng.normal(0, 30, n)
        confidence = float(rng.choice([0.9, 0.95]))
        given = {"points": list(zip(x.tolist(), y.tolist())), "confidence": confidence}
        line = stats.linregress(x, y)
        half, scale = stats.t.isf((1 - confidence) / 2, n - 2) * line.stderr, float(line.stderr)
        questions.ask("slope", "slope", given, (float(line.slope), scale), lambda answer: answer["per_unit"])
        ends(questions, "slope's interval", "slope", given, line.slope - half, line.slope + half, scale)
        expected = (float(line.intercept), float(line.intercept_stderr))
        questions.ask("intercept", "slope", given, expected, lambda answer: answer["intercept"])
        questions.ask("r squared", "slope", given, (float(line.rvalue**2), 1.0), lambda answer: answer["r2"])
    for _ in range(30):
        # Multiples of ten: then blocks are as NumPy splits.
        n = int(rng.integers(2, 60)) * 10
        x, y = np.arange(n) / 60, rng.normal(0, 3, n).cumsum()
        means = [(part.mean(), other.mean()) for part, other in zip(np.split(x, 10), np.split(y, 10))]
        line = stats.linregress(*zip(*means))
        half = stats.t.isf(0.025, 8) * line.stderr
        given = {"points": list(zip(x.tolist(), y.tolist())), "confidence": 0.95}
        ends(questions, "trend over blocks", "trend", given, line.slope - half, line.slope + half, float(line.stderr))
        rising = 100 + 3 * np.arange(min(n, 500)) + rng.normal(0, 5, min(n, 500))
        expected = float(stats.theilslopes(rising).slope)
        questions.ask("Theil and Sen's slope", "steady_slope", {"values": rising.tolist()}, expected)


def holm(p):
    p = np.asarray(p)
    order = np.argsort(p, kind="stable")
    corrected = np.minimum(1, np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order]))
    return corrected[np.argsort(order, kind="stable")]


def families(questions, rng):
    for _ in range(50):
        p = rng.random(rng.integers(1, 30)) ** 3
        p[rng.random(len(p)) < 0.2] = p[0]
        for place, expected in enumerate(holm(p)):
            pick = lambda answer, place=place: answer[place]
            questions.ask("Holm's correction", "holm", {"p": p.tolist()}, float(expected), pick)


def two_sided(sums, observed):
    """Share of all equally likely sums that are as far from their mean as the observed one, or farther."""
    sums, middle = np.asarray(sums), np.mean(sums)
    return float(np.mean(np.abs(sums - middle) >= abs(observed - middle) - 1e-9))


def compare(questions, name, test, a, b, paired, confidence, expected):
    def pick(answer):
        found = answer["significance"]
        return found["p"] if found["test"] == test else f"{found['test']} instead of {test}"

    given = {"a": a.tolist(), "b": b.tolist(), "is_paired": paired, "confidence": confidence}
    questions.ask(name, "compare", given, float(expected), pick)
    if paired:
        blocks = a - b
        shift = np.median([(x + y) / 2 for i, x in enumerate(blocks) for y in blocks[i:]])
    else:
        shift = np.median(np.subtract.outer(a, b))
    scale = float(np.abs(np.concatenate([a, b])).max())
    name = "shift of pairs" if paired else "shift of two samples"
    questions.ask(name, "compare", given, (float(shift), scale), lambda answer: answer["shift"])


# A confidence that leaves rank tests no room, and one that leaves them much.
PARAMETRIC, RANKS = 1 - 1e-12, 0.5


def comparisons(questions, rng):
    for shape, _ in itertools.product(("normal", "log-normal", "negative"), range(15)):
        draw = SHAPES[shape]
        n, m = int(rng.integers(3, 12)), int(rng.integers(3, 12))
        a, b = draw(rng, n), draw(rng, m)
        welch = stats.ttest_ind(a, b, equal_var=False)
        compare(questions, "p of Welch's t", "welch", a, b, False, PARAMETRIC, welch.pvalue)
        exact = stats.mannwhitneyu(a, b, method="exact").pvalue
        compare(questions, "p of the rank sum", "mann-whitney", a, b, False, RANKS, exact)
        c = draw(rng, n)
        # Figures above 0 are compared by their ratios.
        scale = np.log if min(a.min(), c.min()) > 0 else np.asarray
        expected = stats.ttest_rel(scale(a), scale(c)).pvalue
        compare(questions, "p of the paired t", "paired-t", a, c, True, PARAMETRIC, expected)
        a, c = draw(rng, n + 1), draw(rng, n + 1)
        exact = stats.wilcoxon(a, c, method="exact").pvalue
        compare(questions, "p of signed ranks", "signed-rank", a, c, True, RANKS, exact)
        many, more = draw(rng, 40), np.round(draw(rng, 45))
        near = stats.mannwhitneyu(many, more, method="asymptotic", use_continuity=True).pvalue
        compare(questions, "p of the rank sum, many", "mann-whitney", many, more, False, RANKS, near)
        first, second = np.round(draw(rng, 80)), np.round(draw(rng, 80))
        if np.count_nonzero(first - second) > 60:
            near = stats.wilcoxon(first, second, method="asymptotic", correction=True, zero_method="wilcox").pvalue
            compare(questions, "p of signed ranks, many", "signed-rank", first, second, True, RANKS, near)
    for _ in range(40):
        n, m = int(rng.integers(3, 6)), int(rng.integers(3, 7))
        a, b = SHAPES["ties"](rng, n), SHAPES["ties"](rng, m)
        ranks = stats.rankdata(np.concatenate([a, b]))
        sums = [sum(chosen) for chosen in itertools.combinations(ranks, n)]
        p = two_sided(sums, ranks[:n].sum())
        compare(questions, "p of the rank sum, ties", "mann-whitney", a, b, False, RANKS, p)
        n = int(rng.integers(4, 11))
        a, b = SHAPES["ties"](rng, n), SHAPES["ties"](rng, n)
        moved = (a - b)[a != b]
        ranks = stats.rankdata(np.abs(moved))
        sums = [np.dot(signs, ranks) for signs in itertools.product((0, 1), repeat=len(ranks))]
        p = two_sided(sums, ranks[moved > 0].sum())
        compare(questions, "p of signed ranks, ties", "signed-rank", a, b, True, RANKS, p)


def main():
    # SciPy says so of samples that are constant, which are among ours.
    warnings.filterwarnings("ignore", message="Precision loss occurred")
    rng, questions = np.random.default_rng(SEED), Questions()
    for part in (moments, distributions, intervals_of_means, contrasts, effects_and_ranks, lines, families, comparisons):
        part(questions, rng)
    answers = questions.answers(sys.argv[1])
    if len(answers) != len(questions.asked):
        sys.exit(f"{len(questions.asked)} questions, {len(answers)} answers")
    for (name, question, expected, pick), answer in zip(questions.asked, answers):
        if isinstance(answer, dict) and "error" in answer:
            sys.exit(f"{name}: {answer['error']} for {question[:400]}")
        CHECKS[name].add(pick(answer), expected, question)
    print(f"{'function':<26} {'cases':>6} {'largest':>9} {'accepted':>9} {'mean':>10}  deviation")
    for name, check in CHECKS.items():
        centre = float(np.mean(check.deviations)) if check.deviations else math.nan
        mark = "" if check.is_good() else "  FAILED"
        figures = f"{len(check.deviations):>6} {check.worst:>9.1e} {check.tolerance:>9.1e} {centre:>10.1e}"
        print(f"{name:<26} {figures}  {check.unit}{mark}")
    failed = [name for name, check in CHECKS.items() if not check.is_good()]
    for name in failed:
        print(f"\n{name}: {CHECKS[name].worst_question[:2000]}", file=sys.stderr)
    print(f"{len(CHECKS) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
